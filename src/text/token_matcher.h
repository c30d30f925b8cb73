// Finds the tokens that are matched in the text itself, before anything is split or merged: control and user-defined
// ones. A trie over bytes.
#pragma once
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>
#include <string_view>

#include "octavo/ids.h"

namespace octavo {

class TokenMatcher {
 public:
  struct Match {
    TokenId id;
    std::size_t length;  // bytes
  };

  /// Of equal texts the first added stays. An empty text is never found.
  void add(std::string_view text, TokenId id);

  /// The longest token that starts at `at`.
  [[nodiscard]] std::optional<Match> longest_at(std::string_view text, std::size_t at) const;

 private:
  using Node = std::uint32_t;
  static constexpr Node kNone = 0;  // the root is nobody's child

  [[nodiscard]] Node child(Node node, char byte) const;

  std::array<Node, 256> first_{};                            // the root's children
  boost::unordered_flat_map<std::uint64_t, Node> children_;  // by node << 8 | byte
  boost::unordered_flat_map<Node, TokenId> ends_;            // tokens by their last node
  Node last_node_ = 0;
};

}  // namespace octavo
