#include "text/token_matcher.h"

namespace octavo {

namespace {

std::uint64_t edge(std::uint32_t node, char byte) {
  return std::uint64_t{node} << 8 | static_cast<unsigned char>(byte);
}

}  // namespace

void TokenMatcher::add(std::string_view text, TokenId id) {
  if (text.empty()) return;
  Node node = kNone;
  for (const char byte : text) {
    Node& next = node == kNone ? first_[static_cast<unsigned char>(byte)] : children_[edge(node, byte)];
    if (next == kNone) next = ++last_node_;
    node = next;
  }
  ends_.try_emplace(node, id);
}

TokenMatcher::Node TokenMatcher::child(Node node, char byte) const {
  if (node == kNone) return first_[static_cast<unsigned char>(byte)];
  const auto at = children_.find(edge(node, byte));
  return at == children_.end() ? kNone : at->second;
}

std::optional<TokenMatcher::Match> TokenMatcher::longest_at(std::string_view text, std::size_t at) const {
  std::optional<Match> longest;
  Node node = kNone;
  for (std::size_t i = at; i < text.size(); ++i) {
    node = child(node, text[i]);
    if (node == kNone) break;
    if (const auto end = ends_.find(node); end != ends_.end()) longest = Match{end->second, i + 1 - at};
  }
  return longest;
}

}  // namespace octavo
