#include "sample/stop.h"

#include <algorithm>
#include <utility>

namespace octavo {

StopMatcher::StopMatcher(std::vector<std::string> stops, bool include) : stops_(std::move(stops)), include_(include) {
  std::erase(stops_, "");
}

std::string StopMatcher::feed(std::string_view text) {
  if (matched_) return "";
  if (stops_.empty()) return std::string(text);
  const std::size_t searched = pending_.size();  // no stop string ends before here
  pending_ += text;

  std::size_t first_end = std::string::npos;
  for (const std::string& stop : stops_) {
    const std::size_t from = searched < stop.size() ? 0 : searched - stop.size() + 1;
    const std::size_t found = pending_.find(stop, from);
    if (found == std::string::npos) continue;
    const std::size_t end = found + stop.size();
    if (end > first_end || (end == first_end && matched_ && stop.size() <= matched_->size())) continue;
    first_end = end;
    matched_ = stop;
  }
  const std::size_t certain = matched_ ? first_end - (include_ ? 0 : matched_->size()) : pending_.size() - held_back();
  std::string out = pending_.substr(0, certain);
  pending_.erase(0, matched_ ? pending_.size() : certain);
  return out;
}

std::string StopMatcher::finish() { return std::exchange(pending_, ""); }

/// Length of the longest end of the pending text that begins a stop string.
std::size_t StopMatcher::held_back() const {
  std::size_t longest = 0;
  for (const std::string& stop : stops_) {
    std::size_t length = std::min(stop.size() - 1, pending_.size());
    while (length > longest && pending_.compare(pending_.size() - length, length, stop, 0, length) != 0) --length;
    longest = std::max(longest, length);
  }
  return longest;
}

}  // namespace octavo
