// The global functions of a chat template.
#include <algorithm>
#include <array>
#include <ctime>

#include "text/jinja_builtins.h"
#include "text/jinja_number.h"
#include "text/jinja_objects.h"

namespace octavo::jinja {
namespace {

Value function_range(Runtime&, const Args& args) {
  const Params params("range", args, {"start", "stop", "step"}, 1);
  for (std::size_t i = 0; i < args.positional.size(); ++i) {
    if (args.positional[i].is_undefined()) fail(args.positional[i].undefined_message());
  }
  const std::int64_t first = params.integer(0, 0);
  if (!params.has(1)) return Value(std::make_shared<Range>(0, first, 1));
  return Value(std::make_shared<Range>(first, params.integer(1, 0), params.integer(2, 1)));
}

/// dict(mapping or pairs, name=value, ...).
Dict make_dict(Runtime& runtime, const Args& args) {
  if (args.positional.size() > 1)
    fail("dict expected at most 1 argument, got " + std::to_string(args.positional.size()));
  Dict out;
  if (!args.positional.empty()) {
    const Value& source = args.positional[0];
    runtime.charge(source.weight());
    if (const Dict* dict = source.dict()) {
      out = *dict;
    } else {
      for (const Value& pair : runtime.iterate(source)) {
        const std::vector<Value> parts = runtime.iterate(pair);
        if (parts.size() != 2) fail("dict needs pairs, found " + std::to_string(parts.size()) + " items");
        out.set(parts[0], parts[1]);
      }
    }
  }
  for (const auto& [name, value] : args.named) out.set(Value(name), value);
  return out;
}

Value function_dict(Runtime& runtime, const Args& args) { return Value::dict(make_dict(runtime, args)); }

Value function_namespace(Runtime& runtime, const Args& args) {
  auto made = std::make_shared<Namespace>(make_dict(runtime, args));
  runtime.remember(made);
  return Value(std::move(made));
}

Value function_cycler(Runtime&, const Args& args) {
  if (!args.named.empty()) fail("cycler() takes no keyword arguments");
  return Value(std::make_shared<Cycler>(args.positional));
}

Value function_joiner(Runtime&, const Args& args) {
  const Params params("joiner", args, {"sep"}, 0);
  return Value(std::make_shared<Joiner>(params.has(0) ? params[0] : Value(", ")));
}

Value function_lipsum(Runtime&, const Args&) { fail("lipsum() makes random text, which a chat template cannot use"); }

Value function_raise_exception(Runtime& runtime, const Args& args) {
  const Params params("raise_exception", args, {"message"}, 1);
  throw Failure{runtime.text(params[0]), true};
}

std::tm civil_time(std::chrono::local_seconds time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::tm out{};
  out.tm_year = static_cast<int>(date.year()) - 1900;
  out.tm_mon = static_cast<int>(static_cast<unsigned>(date.month())) - 1;
  out.tm_mday = static_cast<int>(static_cast<unsigned>(date.day()));
  out.tm_hour = static_cast<int>(clock.hours().count());
  out.tm_min = static_cast<int>(clock.minutes().count());
  out.tm_sec = static_cast<int>(clock.seconds().count());
  out.tm_wday = static_cast<int>(std::chrono::weekday(day).c_encoding());
  out.tm_yday = static_cast<int>((day - std::chrono::local_days(date.year() / 1 / 1)).count());
  out.tm_isdst = -1;
  return out;
}

/// The text of one directive such as %Y; the time has no zone and no fraction of a second.
std::string time_part(const std::tm& time, char letter, char flag) {
  if (letter == 'f') return "000000";
  if (letter == 'z' || letter == 'Z') return "";
  constexpr std::string_view kKnown = "aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyY%";
  if (kKnown.find(letter) == kKnown.npos) return flag ? std::string{'%', flag, letter} : std::string{'%', letter};
  const char format[] = {'%', flag ? flag : letter, flag ? letter : '\0', '\0'};
  char buffer[128];
  return std::string(buffer, std::strftime(buffer, sizeof buffer, format, &time));
}

Value function_strftime_now(Runtime& runtime, const Args& args) {
  const Params params("strftime_now", args, {"format"}, 1);
  const std::string& format = params.text(0);
  runtime.charge(format.size());
  const std::tm time = civil_time(runtime.now);
  std::string out;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    const char next = format[++i];
    const bool flag = std::string_view("-_0^#").find(next) != std::string_view::npos && i + 1 < format.size();
    out += flag ? time_part(time, format[++i], next) : time_part(time, next, '\0');
  }
  return Value(std::move(out));
}

struct Entry {
  std::string_view name;
  Value (*body)(Runtime&, const Args&);
};
constexpr std::array kFunctions = {
    Entry{"cycler", function_cycler},       Entry{"dict", function_dict},
    Entry{"joiner", function_joiner},       Entry{"lipsum", function_lipsum},
    Entry{"namespace", function_namespace}, Entry{"raise_exception", function_raise_exception},
    Entry{"range", function_range},         Entry{"strftime_now", function_strftime_now},
};

}  // namespace

std::optional<Value> find_function(std::string_view name) {
  const auto found = std::find_if(kFunctions.begin(), kFunctions.end(), [&](const Entry& f) { return f.name == name; });
  if (found == kFunctions.end()) return std::nullopt;
  return Value(std::make_shared<Function>(found->name, found->body));
}

}  // namespace octavo::jinja
