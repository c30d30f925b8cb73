#include "text/jinja_operators.h"

#include <algorithm>
#include <limits>

#include "text/jinja_format.h"
#include "text/jinja_number.h"
#include "text/jinja_objects.h"
#include "text/jinja_unicode.h"

namespace octavo::jinja {
namespace {

std::string_view symbol(Arithmetic operation) {
  switch (operation) {
    case Arithmetic::kAdd: return "+";
    case Arithmetic::kSubtract: return "-";
    case Arithmetic::kMultiply: return "*";
    case Arithmetic::kDivide: return "/";
    case Arithmetic::kFloorDivide: return "//";
    case Arithmetic::kModulo: return "%";
    default: return "** or pow()";
  }
}

std::string quoted_type(const Value& value) { return "'" + std::string(type_name(value)) + "'"; }

Value add_texts(Runtime& runtime, const Value& a, const Value& b) {
  runtime.charge(a.weight() + b.weight());
  if (a.text().size() + b.text().size() > kMaxTextBytes) fail("a text grew beyond the limit");
  if (a.is_markup() || b.is_markup()) return Value(escape(a) + escape(b), true);
  return Value(a.text() + b.text());
}

Value join_items(Runtime& runtime, const Value& a, const Value& b) {
  runtime.charge(a.items()->size() + b.items()->size());
  std::vector<Value> items = *a.items();
  items.insert(items.end(), b.items()->begin(), b.items()->end());
  return a.list() ? Value::list(std::move(items)) : Value::tuple(std::move(items));
}

/// sequence * count.
Value repeat(Runtime& runtime, const Value& sequence, std::int64_t count) {
  const auto times = static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0));
  const std::uint64_t unit = sequence.is_text() ? sequence.text().size() : sequence.items()->size();
  if (unit != 0 && times > kMaxTextBytes / unit) fail("a repetition grew beyond the limit");
  runtime.charge(sequence.is_text() ? unit * times / 16 : unit * times);
  if (sequence.is_text()) {
    std::string out;
    out.reserve(unit * times);
    for (std::uint64_t i = 0; unit != 0 && i < times; ++i) out += sequence.text();
    return Value(std::move(out), sequence.is_markup());
  }
  std::vector<Value> items;
  items.reserve(unit * times);
  for (std::uint64_t i = 0; unit != 0 && i < times; ++i) {
    items.insert(items.end(), sequence.items()->begin(), sequence.items()->end());
  }
  return sequence.list() ? Value::list(std::move(items)) : Value::tuple(std::move(items));
}

bool is_sequence(const Value& value) { return value.is_text() || value.items(); }

bool same_sequence(const Value& a, const Value& b) {
  return (a.is_text() && b.is_text()) || (a.list() && b.list()) || (a.tuple() && b.tuple());
}

/// Where a slice goes, as Python's slice.indices: count items from `first`, `step` apart.
struct Walk {
  std::int64_t first, step, count;
};

std::int64_t slice_part(const Value& value, std::int64_t otherwise) {
  if (value.is_none()) return otherwise;
  const auto index = as_index(value);
  if (!index) fail("slice indices must be integers or None or have an __index__ method");
  return *index;
}

Walk plan_slice(std::size_t size, const Value& start, const Value& stop, const Value& step) {
  const auto n = static_cast<std::int64_t>(size);
  std::int64_t stride = slice_part(step, 1);
  if (stride == 0) fail("slice step cannot be zero");
  stride = std::clamp(stride, -std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::max());
  const std::int64_t low = stride < 0 ? -1 : 0, high = stride < 0 ? n - 1 : n;
  const auto place = [&](const Value& part, std::int64_t otherwise) {
    std::int64_t at = slice_part(part, otherwise);
    if (!part.is_none() && at < 0) at = at < -n ? low : at + n;
    return std::clamp(at, low, high);
  };
  const std::int64_t first = place(start, stride < 0 ? high : low);
  const std::int64_t last = place(stop, stride < 0 ? low : high);
  const std::int64_t distance = stride < 0 ? first - last : last - first;
  const std::int64_t pace = stride < 0 ? -stride : stride;
  return {first, stride, distance <= 0 ? 0 : (distance - 1) / pace + 1};
}

Value slice_text(const Value& value, const Value& start, const Value& stop, const Value& step) {
  const std::string& text = value.text();
  const Walk walk = plan_slice(code_points(text), start, stop, step);
  if (walk.step == 1) {
    const std::size_t begin = byte_offset(text, static_cast<std::size_t>(walk.first));
    const std::string_view rest = std::string_view(text).substr(begin);
    return Value(std::string(rest.substr(0, byte_offset(rest, static_cast<std::size_t>(walk.count)))),
                 value.is_markup());
  }
  const std::vector<std::string_view> characters = split_characters(text);
  std::string out;
  std::int64_t at = walk.first;
  for (std::int64_t i = 0; i < walk.count; ++i) {
    out += characters[static_cast<std::size_t>(at)];
    if (i + 1 < walk.count) at += walk.step;
  }
  return Value(std::move(out), value.is_markup());
}

}  // namespace

std::string escape(const Value& value) {
  const std::string text = str(value);
  if (value.is_markup()) return text;
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\'': out += "&#39;"; break;
      case '"': out += "&#34;"; break;
      default: out += c;
    }
  }
  return out;
}

Value binary(Runtime& runtime, Arithmetic operation, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.big() || b.big() || operation == Arithmetic::kPower) runtime.charge(100);
    return calculate(operation, a, b);
  }
  if (operation == Arithmetic::kModulo && a.is_text())
    return Value(format_percent(runtime, a.text(), b), a.is_markup());
  if (a.is_undefined()) fail(a.undefined_message());
  if (b.is_undefined()) fail(b.undefined_message());
  if (operation == Arithmetic::kAdd) {
    if (a.is_text() && b.is_text()) return add_texts(runtime, a, b);
    if (same_sequence(a, b)) return join_items(runtime, a, b);
    if (is_sequence(a)) {
      const std::string type(type_name(a));
      fail("can only concatenate " + type + " (not \"" + std::string(type_name(b)) + "\") to " + type);
    }
  }
  if (operation == Arithmetic::kMultiply) {
    if (is_sequence(a) && b.is_integer()) return repeat(runtime, a, *as_index(b));
    if (is_sequence(b) && a.is_integer()) return repeat(runtime, b, *as_index(a));
  }
  fail("unsupported operand type(s) for " + std::string(symbol(operation)) + ": " + quoted_type(a) + " and " +
       quoted_type(b));
}

Value unary(Unary::Op operation, const Value& value) {
  if (operation == Unary::Op::kNot) return !truthy(value);
  if (value.is_undefined()) fail(value.undefined_message());
  const bool minus = operation == Unary::Op::kMinus;
  if (!value.is_number())
    fail(std::string("bad operand type for unary ") + (minus ? "-" : "+") + ": " + quoted_type(value));
  if (minus) return negate(value);
  return as_integer(value);
}

bool compare(Runtime& runtime, Comparison operation, const Value& a, const Value& b) {
  runtime.charge(std::min(a.weight(), b.weight()));
  switch (operation) {
    case Comparison::kEqual: return equal(a, b);
    case Comparison::kNotEqual: return !equal(a, b);
    case Comparison::kLess: return less(a, b);
    case Comparison::kGreater: return less(b, a, ">");
    case Comparison::kLessEqual: return less(a, b, "<=") || equal(a, b);
    case Comparison::kGreaterEqual: return less(b, a, ">=") || equal(a, b);
    case Comparison::kIn: return contains(runtime, b, a);
    case Comparison::kNotIn: return !contains(runtime, b, a);
  }
  return false;
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
  runtime.charge(container.weight());
  if (container.is_text()) {
    if (!item.is_text()) {
      fail("'in <string>' requires string as left operand, not " + std::string(type_name(item)));
    }
    return container.text().find(item.text()) != std::string::npos;
  }
  if (const Dict* dict = container.dict()) return dict->find(item) != nullptr;
  if (!iterable(container)) fail("argument of type '" + std::string(type_name(container)) + "' is not iterable");
  const auto* items = container.items();
  const std::vector<Value> walked = items ? std::vector<Value>() : runtime.iterate(container);
  const std::vector<Value>& all = items ? *items : walked;
  return std::any_of(all.begin(), all.end(), [&](const Value& candidate) { return equal(candidate, item); });
}

Value slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop, const Value& step) {
  if (object.is_undefined()) fail(object.undefined_message());
  if (object.is_text()) {
    runtime.charge(object.weight());
    return slice_text(object, start, stop, step);
  }
  if (const auto* range = object.object_as<Range>()) {
    const Walk walk = plan_slice(range->size().value_or(0), start, stop, step);
    if (walk.count == 0) return Value(std::make_shared<Range>(0, 0, 1));
    const std::int64_t first = range->start() + walk.first * range->step();
    if (walk.count == 1) return Value(std::make_shared<Range>(first, first + (first < 0 ? 1 : -1), first < 0 ? 1 : -1));
    const std::int64_t pace = range->step() * walk.step;
    const std::int64_t last = first + (walk.count - 1) * pace;  // an item of the range: no overflow up to here
    return Value(std::make_shared<Range>(first, last + (pace > 0 ? 1 : -1), pace));
  }
  if (object.dict()) fail("unhashable type: 'slice'");
  const auto* items = object.items();
  if (!items) fail("'" + std::string(type_name(object)) + "' object is not subscriptable");
  const Walk walk = plan_slice(items->size(), start, stop, step);
  runtime.charge(static_cast<std::uint64_t>(walk.count));
  std::vector<Value> out;
  std::int64_t at = walk.first;
  for (std::int64_t i = 0; i < walk.count; ++i) {
    out.push_back((*items)[static_cast<std::size_t>(at)]);
    if (i + 1 < walk.count) at += walk.step;
  }
  return object.list() ? Value::list(std::move(out)) : Value::tuple(std::move(out));
}

}  // namespace octavo::jinja
