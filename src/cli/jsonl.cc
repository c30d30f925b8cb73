#include "cli/jsonl.h"

#include <fmt/format.h>

#include <cmath>

namespace octavo {
namespace {

constexpr int kMaxDepth = 200;

/// Nesting is checked before parsing: whoever walks the value later may do it recursively.
bool too_deep(const std::string& text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kMaxDepth) return true;
  }
  return false;
}

Error invalid(const std::string& message, const char* field = "") {
  return Error{ErrorCode::kInvalidArgument, message, field};
}

std::optional<TokenId> as_token(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  const auto id = value.get<std::int64_t>();
  if (!std::in_range<std::int32_t>(id)) return std::nullopt;
  return TokenId{static_cast<std::int32_t>(id)};
}

}  // namespace

Result<Json> parse_object(const std::string& line) {
  if (too_deep(line)) return invalid(fmt::format("JSON nested deeper than {}", kMaxDepth));
  try {
    Json value = Json::parse(line);
    if (!value.is_object()) return invalid("expected a JSON object on each line");
    return value;
  } catch (const Json::parse_error& error) {
    return invalid(fmt::format("not valid JSON, at byte {}", error.byte));
  }
}

std::string dump(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

const Json* Fields::find(const char* name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool Fields::refuse(const char* name, const std::string& expected) {
  std::string value = dump(*find(name));
  if (value.size() > 60) value = value.substr(0, 57) + "...";
  if (!error_) error_ = invalid(fmt::format("field '{}' is {}, expected {}", name, value, expected), name);
  return false;
}

bool Fields::read(const char* name, std::string& target) {
  const Json* value = find(name);
  if (value == nullptr) return false;
  if (!value->is_string()) return refuse(name, "a string");
  target = value->get<std::string>();
  return true;
}

bool Fields::read(const char* name, bool& target) {
  const Json* value = find(name);
  if (value == nullptr) return false;
  if (!value->is_boolean()) return refuse(name, "true or false");
  target = value->get<bool>();
  return true;
}

bool Fields::read(const char* name, float& target) {
  const Json* value = find(name);
  if (value == nullptr) return false;
  if (!value->is_number() || !std::isfinite(value->get<float>())) return refuse(name, "a number");
  target = value->get<float>();
  return true;
}

bool Fields::read(const char* name, std::vector<TokenId>& target) {
  const Json* value = find(name);
  if (value == nullptr) return false;
  if (!value->is_array()) return refuse(name, "a list of token ids");
  target.clear();
  for (const Json& item : *value) {
    const auto id = as_token(item);
    if (!id) return refuse(name, "a list of token ids");
    target.push_back(*id);
  }
  return true;
}

bool Fields::read(const char* name, std::vector<std::string>& target) {
  const Json* value = find(name);
  if (value == nullptr) return false;
  const auto items = value->is_array() ? *value : Json::array({*value});
  target.clear();
  for (const Json& item : items) {
    if (!item.is_string()) return refuse(name, "a string or a list of strings");
    target.push_back(item.get<std::string>());
  }
  return true;
}

Result<> Fields::error() const {
  if (error_) return *error_;
  return Ok{};
}

void answer_lines(std::istream& in, std::ostream& out, const std::function<Result<Json>(const Json&)>& answer) {
  std::string line;
  while (std::getline(in, line)) {
    Result<Json> question = parse_object(line);
    const Result<Json> reply = question ? answer(*question) : question;
    out << dump(reply ? *reply : Json{{"error", reply.error().message}}) << std::endl;
  }
}

}  // namespace octavo
