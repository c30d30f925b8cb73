#include "cli/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace octavo {
namespace {

Error wrong(std::string message) { return {ErrorCode::kCorrupt, std::move(message), ""}; }

/// Reads fields that must be there.
class Required {
 public:
  explicit Required(const Json& object) : fields_(object) {}

  template <class T>
  Required& operator()(const char* name, T& target) {
    if (!fields_.read(name, target) && missing_ == nullptr) missing_ = name;
    return *this;
  }
  [[nodiscard]] Result<> result() const {
    OCTAVO_CHECK_OK(fields_.error());
    if (missing_ != nullptr) return wrong(fmt::format("the field '{}' is missing", missing_));
    return Ok{};
  }

 private:
  Fields fields_;
  const char* missing_ = nullptr;
};

Result<StepRecord> read_step(const Json& object) {
  StepRecord r;
  Required read(object);
  for_each_field(r, read);
  OCTAVO_CHECK_OK(read.result());
  return r;
}

Result<TracedMoment> read_moment(const Json& object) {
  TracedMoment m;
  Required read(object);
  read("request", m.request)("event", m.event)("at_us", m.at_us);
  if (m.event == "arrived") {
    read("prompt_tokens", m.prompt_tokens)("choices", m.choices);
  } else {
    read("choice", m.choice);
    if (m.event == "scheduled") read("cached_tokens", m.cached_tokens);
    if (m.event == "finished") read("reason", m.reason)("completion_tokens", m.completion_tokens);
  }
  OCTAVO_CHECK_OK(read.result());
  constexpr std::array<std::string_view, 4> kEvents{"arrived", "scheduled", "first_token", "finished"};
  if (std::find(kEvents.begin(), kEvents.end(), m.event) == kEvents.end()) {
    return wrong(fmt::format("unknown event \"{}\"", m.event));
  }
  return m;
}

Result<TraceLine> read_line(const std::string& text, bool first) {
  OCTAVO_TRY(Json object, parse_object(text));
  TraceLine line;
  if (first) {
    std::uint32_t version = 0;
    OCTAVO_CHECK_OK(Required(object)("octavo_trace", version).result());
    if (version != 1) return wrong(fmt::format("version {} of the format, this octavo reads 1", version));
    line.head = std::move(object);
  } else if (object.contains("step")) {
    OCTAVO_TRY(line.step, read_step(object));
  } else if (object.contains("request")) {
    OCTAVO_TRY(line.moment, read_moment(object));
  } else if (object.contains("kv")) {
    std::string kind;
    OCTAVO_CHECK_OK(Required(object)("kv", kind).result());
    if (kind != "stored" && kind != "removed" && kind != "cleared") {
      return wrong(fmt::format("unknown KV event \"{}\"", kind));
    }
    line.kv_blocks = object.contains("hashes") ? object["hashes"].size() : 0;
    line.kv = std::move(kind);
  } else if (object.contains("end")) {
    line.end = true;
  } else if (object.contains("lost")) {
    std::uint64_t lost = 0;
    OCTAVO_CHECK_OK(Required(object)("lost", lost).result());
    line.lost = lost;
  } else {
    return wrong("expected one of the fields 'step', 'request', 'kv', 'lost', 'end'");
  }
  return line;
}

}  // namespace

Result<> read_trace(std::istream& in, const std::string& path, const std::function<void(const TraceLine& line)>& see) {
  std::uint64_t number = 0;
  for (std::string text; std::getline(in, text);) {
    ++number;
    const auto line = read_line(text, number == 1);
    if (!line && number > 1 && in.eof() && !parse_object(text)) return Ok{};  // cut off within its last line
    if (!line) {
      return wrong(fmt::format(
          "{}:{}: {}", path, number,
          number == 1 ? "not the first line of an octavo trace: " + line.error().message : line.error().message));
    }
    see(*line);
  }
  if (number == 0) return wrong(path + ": no line of an octavo trace in it");
  return Ok{};
}

}  // namespace octavo
