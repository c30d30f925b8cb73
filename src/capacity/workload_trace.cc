#include "capacity/workload_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/file_map.h"

namespace octavo {
namespace {

using std::chrono::microseconds;
using Json = nlohmann::json;

constexpr std::int64_t kMaxSeconds = 10LL * 366 * 86400;  // from the first arrival to the last
constexpr double kLatestSecond = 1e11;                    // an arrival may count from 1970
constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20U;
constexpr std::uint32_t kHashBlockTokens = 512;  // as Workload::prefix_block_tokens

enum class Column : std::uint8_t { kArrival, kPrompt, kOutput };
constexpr std::size_t kColumns = 3;

struct Name {
  std::string_view name;  // small letters and digits alone
  Column column;
};
constexpr Name kNames[] = {
    {"arrival", Column::kArrival},       {"arrivedat", Column::kArrival},       {"arrivaltime", Column::kArrival},
    {"timestamp", Column::kArrival},     {"prompt", Column::kPrompt},           {"prompttokens", Column::kPrompt},
    {"contexttokens", Column::kPrompt},  {"numprefilltokens", Column::kPrompt}, {"requesttokens", Column::kPrompt},
    {"inputlength", Column::kPrompt},    {"inputtokens", Column::kPrompt},      {"output", Column::kOutput},
    {"outputtokens", Column::kOutput},   {"generatedtokens", Column::kOutput},  {"numdecodetokens", Column::kOutput},
    {"responsetokens", Column::kOutput}, {"outputlength", Column::kOutput},
};
constexpr const char* kKnown =
    "arrival, arrived_at or timestamp; prompt, ContextTokens, num_prefill_tokens, 'Request tokens' or input_length; "
    "output, GeneratedTokens, num_decode_tokens, 'Response tokens' or output_length";

std::optional<Column> column_of(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') plain += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) plain += c;
  }
  const auto* const found = std::ranges::find(kNames, plain, &Name::name);
  if (found == std::end(kNames)) return std::nullopt;
  return found->column;
}

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 40;
  std::string out;
  for (const char c : text.substr(0, kMost)) out += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > kMost ? out + "..." : out;
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

template <class T>
bool parse_whole(std::string_view text, T& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size();
}

/// Takes the digits at the front, `width` of them.
bool take_number(std::string_view& text, std::size_t width, int& value) {
  if (text.size() < width || !parse_whole(text.substr(0, width), value) || value < 0) return false;
  text.remove_prefix(width);
  return true;
}
bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

/// "2023-11-16 18:17:03.9799600", with T for the space, with Z or an offset behind.
std::optional<microseconds> parse_date(std::string_view text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  if (!take_number(text, 4, year) || !take(text, "-") || !take_number(text, 2, month) || !take(text, "-") ||
      !take_number(text, 2, day) || !take(text, " T") || !take_number(text, 2, hour) || !take(text, ":") ||
      !take_number(text, 2, minute) || !take(text, ":") || !take_number(text, 2, second)) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  microseconds time = std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(hour) +
                      std::chrono::minutes(minute) + std::chrono::seconds(second);
  if (take(text, ".")) {
    std::size_t digits = 0;
    for (std::int64_t unit = 100'000; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
      time += microseconds(unit * (text[digits] - '0'));
      unit /= 10;
    }
    if (digits == 0) return std::nullopt;
    text.remove_prefix(digits);
  }
  if (text == "Z" || text.empty()) return time;
  const int sign = text.front() == '+' ? -1 : text.front() == '-' ? 1 : 0;
  text.remove_prefix(1);
  if (sign == 0 || !take_number(text, 2, hour) || !take(text, ":") || !take_number(text, 2, minute) || !text.empty()) {
    return std::nullopt;
  }
  return time + sign * (std::chrono::hours(hour) + std::chrono::minutes(minute));
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  Result<Trace> read(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    enum class Kind : std::uint8_t { kUnknown, kCsv, kJson } kind = Kind::kUnknown;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = trimmed(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      ++line_;
      if (line.empty()) continue;
      if (line.size() > kMaxLineBytes) {
        return wrong(fmt::format("{} bytes in one line, at most {} are read", line.size(), kMaxLineBytes));
      }
      if (kind == Kind::kUnknown) {
        kind = line.front() == '{' ? Kind::kJson : Kind::kCsv;
        if (kind == Kind::kCsv) {
          OCTAVO_CHECK_OK(read_header(line));
          continue;
        }
      }
      OCTAVO_CHECK_OK(kind == Kind::kJson ? read_json(line) : read_row(line));
    }
    if (kind == Kind::kUnknown) return corrupt(fmt::format("{}: is empty: a trace has a line for each request", file_));
    if (trace_.requests.empty()) {
      return corrupt(trace_.failed == 0
                         ? fmt::format("{}: a header and no request", file_)
                         : fmt::format("{}: all {} requests failed: none has an output token", file_, trace_.failed));
    }
    const microseconds first = trace_.requests.front().arrival;
    for (PlannedRequest& request : trace_.requests) request.arrival -= first;
    return std::move(trace_);
  }

 private:
  static Error corrupt(std::string message) { return {ErrorCode::kCorrupt, std::move(message), "workload"}; }
  [[nodiscard]] Error wrong(const std::string& what) const {
    return corrupt(fmt::format("{}:{}: {}", file_, line_, what));
  }

  /// The fields of a CSV line into `fields_`. Quotes may enclose one; "" within stands for a quote.
  Result<> split(std::string_view line) {
    fields_.clear();
    for (;;) {
      std::string field;
      if (!line.empty() && line.front() == '"') {
        std::size_t at = 1;
        for (;; ++at) {
          if (at >= line.size()) return wrong("a quote is opened and not closed");
          if (line[at] != '"') {
            field += line[at];
          } else if (at + 1 < line.size() && line[at + 1] == '"') {
            field += line[++at];
          } else {
            break;
          }
        }
        line.remove_prefix(at + 1);
        if (!line.empty() && line.front() != ',') return wrong("text between a closing quote and the comma");
      } else {
        const std::size_t comma = std::min(line.find(','), line.size());
        field = trimmed(line.substr(0, comma));
        line.remove_prefix(comma);
      }
      fields_.push_back(std::move(field));
      if (line.empty()) return Ok{};
      line.remove_prefix(1);
    }
  }

  Result<> read_header(std::string_view line) {
    if (line.front() == '[') {
      return wrong("is one JSON list; a trace is JSON lines, an object for each request, with lengths in tokens");
    }
    OCTAVO_CHECK_OK(split(line));
    header_size_ = fields_.size();
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const auto column = column_of(fields_[i]);
      if (!column) continue;
      auto& place = places_[index(*column)];
      if (place) {
        return wrong(fmt::format("columns '{}' and '{}' say the same: leave one", shown(names_[index(*column)]),
                                 shown(fields_[i])));
      }
      place = i;
      names_[index(*column)] = fields_[i];
    }
    for (const Column needed : {Column::kPrompt, Column::kOutput}) {
      if (places_[index(needed)]) continue;
      return wrong(fmt::format("no column for the length of the {} in the header '{}'; known are {}",
                               needed == Column::kPrompt ? "prompt" : "output", shown(line), kKnown));
    }
    trace_.timed = places_[index(Column::kArrival)].has_value();
    return Ok{};
  }

  Result<> read_row(std::string_view line) {
    OCTAVO_CHECK_OK(split(line));
    if (fields_.size() != header_size_) {
      return wrong(fmt::format("{} fields, and the header has {}", fields_.size(), header_size_));
    }
    PlannedRequest request;
    if (trace_.timed) {
      OCTAVO_TRY(request.arrival, arrival(fields_[*places_[index(Column::kArrival)]], name(Column::kArrival)));
    }
    OCTAVO_TRY(const std::uint64_t prompt, tokens(Column::kPrompt));
    OCTAVO_TRY(const std::uint64_t output, tokens(Column::kOutput));
    return add(std::move(request), prompt, output);
  }

  [[nodiscard]] Result<microseconds> arrival(std::string_view text, const std::string& name) const {
    if (const auto date = parse_date(text)) return *date;
    double seconds = 0;
    if (!parse_whole(text, seconds)) {
      return wrong(fmt::format("{} '{}' is neither seconds nor a date like 2023-11-16 18:17:03.98", name, shown(text)));
    }
    return since(seconds, 1, name);
  }

  /// `value` in seconds / `per_second`.
  [[nodiscard]] Result<microseconds> since(double value, double per_second, const std::string& name) const {
    const double seconds = value / per_second;
    if (!(seconds >= 0 && seconds <= kLatestSecond)) {  // also refuses a nan
      return wrong(fmt::format("{} {} is not a time from 0 to {} s", name, value, kLatestSecond));
    }
    return microseconds(std::llround(seconds * 1e6));
  }

  [[nodiscard]] Result<std::uint64_t> tokens(Column column) const {
    std::uint64_t value = 0;
    const std::string& text = fields_[*places_[index(column)]];
    if (parse_whole(text, value)) return value;
    double number = 0;  // some tools write 42.0
    if (parse_whole(std::string_view(text), number) && number >= 0 && number <= kMaxRequestTokens &&
        number == std::floor(number)) {
      return static_cast<std::uint64_t>(number);
    }
    return wrong(fmt::format("{} '{}' is not a number of tokens", name(column), shown(text)));
  }

  Result<> read_json(std::string_view line) {
    const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) return wrong("is not a JSON object");
    PlannedRequest request;
    std::uint64_t lengths[2] = {};
    std::array<bool, kColumns> found{};
    for (const auto& [key, value] : object.items()) {
      if (key == "hash_ids") {
        OCTAVO_CHECK_OK(read_ids(value, request.prefix_ids));
        continue;
      }
      const auto column = column_of(key);
      if (!column || value.is_null()) continue;
      if (std::exchange(found[index(*column)], true)) {
        return wrong(fmt::format("'{}' says what another key says: leave one", shown(key)));
      }
      if (*column == Column::kArrival) {
        OCTAVO_TRY(request.arrival, json_arrival(key, value));
        continue;
      }
      if (!value.is_number_unsigned()) {
        return wrong(fmt::format("{} {} is not a number of tokens", shown(key), brief(value)));
      }
      lengths[*column == Column::kPrompt ? 0 : 1] = value.get<std::uint64_t>();
    }
    for (const Column needed : {Column::kPrompt, Column::kOutput}) {
      if (found[index(needed)]) continue;
      return wrong(
          fmt::format("no length of the {}; known are {}", needed == Column::kPrompt ? "prompt" : "output", kKnown));
    }
    const bool timed = found[index(Column::kArrival)];
    if (trace_.requests.empty() && trace_.failed == 0) trace_.timed = timed;
    if (timed != trace_.timed) {
      return wrong(timed ? "has an arrival, and lines before have none" : "has no arrival, and lines before have one");
    }
    return add(std::move(request), lengths[0], lengths[1]);
  }

  /// "timestamp" of JSON lines counts milliseconds, as Mooncake's.
  [[nodiscard]] Result<microseconds> json_arrival(const std::string& key, const Json& value) const {
    if (value.is_string()) return arrival(value.get_ref<const std::string&>(), key);
    if (!value.is_number()) return wrong(fmt::format("{} {} is not a time", shown(key), brief(value)));
    return since(value.get<double>(), key == "timestamp" ? 1000 : 1, key);
  }

  Result<> read_ids(const Json& value, std::vector<std::uint64_t>& ids) const {
    if (!value.is_array()) return wrong(fmt::format("hash_ids {} is not a list", brief(value)));
    ids.reserve(value.size());
    for (const Json& id : value) {
      if (!id.is_number_unsigned()) return wrong(fmt::format("hash_ids has {}, which is no block's id", brief(id)));
      ids.push_back(id.get<std::uint64_t>());
    }
    return Ok{};
  }

  static std::string brief(const Json& value) {
    if (value.is_array()) return "a list";
    if (value.is_object()) return "an object";
    return shown(value.dump(-1, ' ', true, Json::error_handler_t::replace));
  }

  Result<> add(PlannedRequest request, std::uint64_t prompt, std::uint64_t output) {
    if (trace_.timed) {
      if (request.arrival < last_) {
        return wrong(fmt::format("arrives {} s before the request in front of it: sort the trace by arrival",
                                 std::chrono::duration<double>(last_ - request.arrival).count()));
      }
      if (first_ && request.arrival - *first_ > std::chrono::seconds(kMaxSeconds)) {
        return wrong(fmt::format("arrives more than {} s after the first", kMaxSeconds));
      }
      first_ = first_.value_or(request.arrival);
      last_ = request.arrival;
    }
    if (output == 0) {
      ++trace_.failed;
      return Ok{};
    }
    if (prompt == 0) return wrong("a prompt of 0 tokens has an answer: leave the request out");
    for (const std::uint64_t tokens : {prompt, output}) {
      if (tokens <= kMaxRequestTokens) continue;
      return wrong(fmt::format("{} tokens are more than a request may have, {}", tokens, kMaxRequestTokens));
    }
    if (trace_.requests.size() == kMaxRequests) return wrong(fmt::format("more than {} requests", kMaxRequests));
    request.prompt_tokens = static_cast<std::uint32_t>(prompt);
    request.output_tokens = static_cast<std::uint32_t>(output);
    const std::uint64_t blocks = (prompt + kHashBlockTokens - 1) / kHashBlockTokens;
    if (request.prefix_ids.size() > blocks) {
      return wrong(fmt::format("{} hash_ids for a prompt of {} tokens: blocks of {} make {}", request.prefix_ids.size(),
                               prompt, kHashBlockTokens, blocks));
    }
    trace_.requests.push_back(std::move(request));
    return Ok{};
  }

  static std::size_t index(Column column) { return static_cast<std::size_t>(column); }
  [[nodiscard]] std::string name(Column column) const { return shown(names_[index(column)]); }

  const std::string& file_;
  std::uint64_t line_ = 0;
  Trace trace_;
  std::vector<std::string> fields_;
  std::size_t header_size_ = 0;
  std::array<std::optional<std::size_t>, kColumns> places_;
  std::array<std::string, kColumns> names_;
  std::optional<microseconds> first_;
  microseconds last_ = microseconds::min();
};

}  // namespace

Result<Trace> parse_trace(const std::string& file, std::string_view text) { return Reader(file).read(text); }

Result<Trace> read_trace(const std::string& path) {
  OCTAVO_TRY(const FileMap map, FileMap::open(path));
  const auto bytes = map.bytes();
  return parse_trace(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace octavo
