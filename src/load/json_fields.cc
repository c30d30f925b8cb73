#include "load/json_fields.h"

#include <set>
#include <vector>

namespace octavo {
namespace {

constexpr int kMaxDepth = 32;

struct Refused {
  std::string reason;
};

}  // namespace

Result<nlohmann::json> parse_json_object(const std::string& path, std::string_view text) {
  using nlohmann::json;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMaxDepth) throw Refused{fmt::format("nests deeper than {} levels", kMaxDepth)};
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      throw Refused{fmt::format("key '{}' occurs twice", parsed.get<std::string>())};
    }
    return true;
  };
  std::string reason = "is not an object";
  try {
    json parsed = json::parse(text, watch);
    if (parsed.is_object()) return parsed;
  } catch (const Refused& refused) {
    reason = refused.reason;
  } catch (const json::exception& problem) {
    reason = problem.what();
  }
  return Error{ErrorCode::kCorrupt, fmt::format("{}: JSON: {}", path, reason), ""};
}

}  // namespace octavo
