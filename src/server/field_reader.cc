#include "server/field_reader.h"

#include <fmt/format.h>

#include <utility>

namespace octavo {
namespace {

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxKeys = 1024;  // per object: looking keys up in an ordered object is linear
constexpr std::size_t kShownBytes = 80;

Error bad_json(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message), {}}; }

/// Depth and keys, before anything is built.
Result<> check_bounds(std::string_view text) {
  std::vector<std::size_t> keys;  // per open bracket
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      keys.push_back(0);
      if (keys.size() > kMaxDepth) {
        return bad_json(fmt::format("The JSON body is nested deeper than the limit of {} levels.", kMaxDepth));
      }
    } else if ((c == ']' || c == '}') && !keys.empty()) {
      keys.pop_back();
    } else if (c == ':' && !keys.empty() && ++keys.back() > kMaxKeys) {
      return bad_json(fmt::format("An object in the JSON body has more than the limit of {} keys.", kMaxKeys));
    }
  }
  return Ok{};
}

/// The library's sentence without its "[json.exception...] " and without the whole of what was read.
std::string reason_of(std::string what) {
  if (const auto end = what.find("] "); end != std::string::npos) what.erase(0, end + 2);
  if (const auto read = what.find("; last read"); read != std::string::npos && what.size() > 200) what.erase(read);
  if (what.size() > 300) what.resize(300);
  return what;
}

}  // namespace

Result<Json> parse_json(std::string_view text) {
  OCTAVO_CHECK_OK(check_bounds(text));
  try {
    return Json::parse(text);
  } catch (const Json::exception& caught) {
    return bad_json(fmt::format("The body is not valid JSON: {}.", reason_of(caught.what())));
  }
}

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kShownBytes) text = text.substr(0, kShownBytes) + "...";
  return text;
}

const Json* FieldReader::find(const char* name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void FieldReader::fail(const char* name, ErrorCode code, std::string message) {
  if (!error_) error_ = Error{code, std::move(message), name};
}

void FieldReader::refuse(const char* name, const Json& value, const std::string& wanted) {
  fail(name, ErrorCode::kInvalidArgument, fmt::format("{} is {}, but must be {}.", name, shown(value), wanted));
}

std::optional<double> FieldReader::checked_number(const char* name, Range range, bool whole) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  const double number = value->is_number() ? value->get<double>() : NAN;
  const bool inside =
      number <= range.highest && (range.lowest_excluded ? number > range.lowest : number >= range.lowest);
  if (inside && (!whole || number == std::floor(number))) return number;
  refuse(name, *value,
         fmt::format("{} {} {} {} {}", whole ? "a whole number" : "a number", range.lowest_excluded ? "above" : "from",
                     range.lowest, range.lowest_excluded ? "up to" : "to", range.highest));
  return std::nullopt;
}

void FieldReader::read(const char* name, bool& out) {
  const Json* value = find(name);
  if (value == nullptr) return;
  if (!value->is_boolean()) return refuse(name, *value, "true or false");
  out = value->get<bool>();
}

void FieldReader::read(const char* name, std::string& out) {
  const Json* value = find(name);
  if (value == nullptr) return;
  if (!value->is_string()) return refuse(name, *value, "a string");
  out = value->get<std::string>();
}

void FieldReader::read(const char* name, std::vector<std::string>& out, std::size_t most) {
  const Json* value = find(name);
  if (value == nullptr) return;
  const auto usable = [](const Json& item) { return item.is_string() && !item.get_ref<const std::string&>().empty(); };
  const std::string wanted = fmt::format("a string or a list of at most {} strings, none of them empty", most);
  if (value->is_array() && value->size() <= most) {
    for (const Json& item : *value) {
      if (!usable(item)) return refuse(name, *value, wanted);
      out.push_back(item.get<std::string>());
    }
  } else if (usable(*value)) {
    out.push_back(value->get<std::string>());
  } else {
    refuse(name, *value, wanted);
  }
}

void FieldReader::read(const char* name, std::vector<TokenId>& out, std::uint32_t vocab_size) {
  const Json* value = find(name);
  if (value == nullptr) return;
  if (!value->is_array()) return refuse(name, *value, "a list of token ids");
  TokenList list = read_token_ids(*value, vocab_size);
  if (list.wrong != nullptr) {
    return fail(
        name, ErrorCode::kInvalidArgument,
        fmt::format("{} holds {}, but this model's token ids are 0 to {}.", name, shown(*list.wrong), vocab_size - 1));
  }
  out = std::move(list.ids);
}

TokenList read_token_ids(const Json& list, std::uint32_t vocab_size) {
  TokenList out;
  out.ids.reserve(list.size());
  for (const Json& item : list) {
    if (!item.is_number_integer() || item.get<double>() < 0 || item.get<double>() >= vocab_size) {
      out.wrong = &item;
      break;
    }
    out.ids.push_back({item.get<std::int32_t>()});
  }
  return out;
}

}  // namespace octavo
