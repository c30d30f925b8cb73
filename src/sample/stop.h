// Stop strings over streamed text: found across token borders, and nothing that might become one is given out early.
// The answer ends where a stop string first is complete; of several that end there, the longest counts.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

class StopMatcher {
 public:
  /// `include`: the stop string is part of the text. Empty strings are never found.
  StopMatcher(std::vector<std::string> stops, bool include);

  /// New text in, text that is certain out. After a match everything is ignored.
  [[nodiscard]] std::string feed(std::string_view text);
  /// The end of the stream: what was held back.
  [[nodiscard]] std::string finish();
  /// The stop string that was found.
  [[nodiscard]] const std::optional<std::string>& matched() const { return matched_; }

 private:
  [[nodiscard]] std::size_t held_back() const;

  std::vector<std::string> stops_;
  bool include_;
  std::string pending_;  // certain to hold no whole stop string
  std::optional<std::string> matched_;
};

}  // namespace octavo
