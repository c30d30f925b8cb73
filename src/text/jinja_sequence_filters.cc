// Filters that walk a sequence. Python's lazy ones (map, select, ...) give an Iterator here: walked once, no length.
#include <algorithm>
#include <array>
#include <functional>

#include "text/jinja_builtins.h"
#include "text/jinja_number.h"
#include "text/jinja_objects.h"
#include "text/jinja_operators.h"
#include "text/jinja_unicode.h"

namespace octavo::jinja {
namespace {

using Emit = std::function<void(Value)>;

/// An Iterator over what `produce` emits; a failure on the way waits inside it.
template <class Produce>
Value lazily(Produce produce) {
  std::vector<Value> items;
  try {
    produce([&items](Value item) { items.push_back(std::move(item)); });
  } catch (const Failure& failure) {
    return Value(std::make_shared<Iterator>(std::move(items), failure));
  }
  return Value(std::make_shared<Iterator>(std::move(items)));
}

/// Follows "a.b.0" from an item; digits are positions.
class Path {
 public:
  explicit Path(const Value& attribute, Value otherwise = {}) : otherwise_(std::move(otherwise)) {
    if (attribute.is_none()) return;
    if (!attribute.is_text()) {
      parts_.push_back(attribute);
      return;
    }
    const std::string& text = attribute.text();
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find('.', begin), text.size());
      const std::string part = text.substr(begin, end - begin);
      const bool digits = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
      const auto number = digits ? parse_integer(part, 10) : std::nullopt;
      parts_.push_back(number ? *number : Value(part));
      begin = end + 1;
    }
  }

  [[nodiscard]] Value follow(Runtime& runtime, Value item) const {
    for (const Value& part : parts_) {
      item = runtime.item(item, part);
      if (item.is_undefined() && !otherwise_.is_none()) item = otherwise_;
    }
    return item;
  }

 private:
  std::vector<Value> parts_;
  Value otherwise_;
};

Value without_case(Value value) { return value.is_text() ? Value(to_lower(value.text())) : value; }

/// The sort key of an item: its attribute, or several separated by commas as a list.
class Key {
 public:
  Key(const Value& attribute, bool case_sensitive, bool several, Value otherwise = {})
      : case_sensitive_(case_sensitive) {
    if (!several || !attribute.is_text()) {
      paths_.emplace_back(attribute, std::move(otherwise));
      return;
    }
    const std::string& text = attribute.text();
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      paths_.emplace_back(Value(text.substr(begin, end - begin)));
      begin = end + 1;
    }
  }

  [[nodiscard]] Value of(Runtime& runtime, const Value& item) const {
    std::vector<Value> keys;
    for (const Path& path : paths_) {
      Value key = path.follow(runtime, item);
      keys.push_back(case_sensitive_ ? std::move(key) : without_case(std::move(key)));
    }
    return keys.size() == 1 ? keys.front() : Value::list(std::move(keys));
  }

 private:
  std::vector<Path> paths_;
  bool case_sensitive_;
};

struct Keyed {
  Value key, item;
};

std::vector<Keyed> with_keys(Runtime& runtime, const std::vector<Value>& items, const Key& key) {
  std::vector<Keyed> out;
  out.reserve(items.size());
  for (const Value& item : items) out.push_back({key.of(runtime, item), item});
  return out;
}

/// Stable, also in reverse.
void sort_by_key(Runtime& runtime, std::vector<Keyed>& items, bool reverse) {
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    runtime.charge(std::min(a.key.weight(), b.key.weight()));
    return reverse ? less(b.key, a.key) : less(a.key, b.key);
  });
}

std::vector<Value> items_of(std::vector<Keyed> keyed) {
  std::vector<Value> out;
  out.reserve(keyed.size());
  for (Keyed& entry : keyed) out.push_back(std::move(entry.item));
  return out;
}

Value filter_list(Runtime& runtime, const Value& input, const Args& args) {
  const Params none("list", args, {}, 0);
  return Value::list(runtime.iterate(input));
}

Value filter_first(Runtime& runtime, const Value& input, const Args& args) {
  const Params none("first", args, {}, 0);
  if (auto* iterator = input.object_as<Iterator>()) {
    if (auto item = iterator->next()) return std::move(*item);
  } else if (input.is_text() && !input.text().empty()) {
    return runtime.item(input, Value(0));
  } else if (const auto* items = input.items(); items && !items->empty()) {
    return items->front();
  } else if (const std::vector<Value> walked = runtime.iterate(input); !walked.empty()) {
    return walked.front();
  }
  return Value::undefined("there is no first item: the sequence is empty");
}

/// What Python's reversed() walks over, in order.
std::vector<Value> reversible(Runtime& runtime, const Value& input) {
  if (input.object() && !input.object()->size()) {
    fail("'" + std::string(type_name(input)) + "' object is not reversible");
  }
  return runtime.iterate(input);
}

Value filter_last(Runtime& runtime, const Value& input, const Args& args) {
  const Params none("last", args, {}, 0);
  const auto* items = input.items();
  if (items && !items->empty()) return items->back();
  if (input.is_text() && !input.text().empty()) return runtime.item(input, Value(-1));
  const std::vector<Value> walked = reversible(runtime, input);
  return walked.empty() ? Value::undefined("there is no last item: the sequence is empty") : walked.back();
}

Value filter_reverse(Runtime& runtime, const Value& input, const Args& args) {
  const Params none("reverse", args, {}, 0);
  if (input.is_text()) return slice(runtime, input, {}, {}, Value(-1));
  std::vector<Value> items = runtime.iterate(input);
  std::reverse(items.begin(), items.end());
  const bool has_order = !input.object() || input.object()->size();
  if (!has_order) return Value::list(std::move(items));
  return Value(std::make_shared<Iterator>(std::move(items), input.list() ? "list_reverseiterator" : "reversed"));
}

Value filter_join(Runtime& runtime, const Value& input, const Args& args) {
  const Params params("join", args, {"d", "attribute"}, 0);
  const std::string separator = params.has(0) ? runtime.text(params[0]) : "";
  const Path path(params[1]);
  std::string out;
  bool first = true;
  for (const Value& item : runtime.iterate(input)) {
    if (!first) out += separator;
    first = false;
    out += runtime.text(path.follow(runtime, item));
    runtime.charge(separator.size() / 16);
    if (out.size() > kMaxTextBytes) fail("a text grew beyond the limit");
  }
  return Value(std::move(out));
}

Value filter_items(Runtime& runtime, const Value& input, const Args& args) {
  const Params none("items", args, {}, 0);
  return lazily([&](const Emit& emit) {
    if (input.is_undefined()) return;
    if (!input.dict()) fail("Can only get item pairs from a mapping.");
    runtime.charge(input.dict()->size());
    for (const auto& [key, value] : input.dict()->entries()) emit(Value::tuple({key, value}));
  });
}

Value filter_dictsort(Runtime& runtime, const Value& input, const Args& args) {
  const Params params("dictsort", args, {"case_sensitive", "by", "reverse"}, 0);
  const std::string by = params.has(1) ? params.text(1) : "key";
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  if (!input.dict()) fail("dictsort needs a dict, got " + std::string(type_name(input)));
  std::vector<Value> pairs = DictView(input, DictView::Kind::kItems).iterate();
  std::vector<Keyed> keyed = with_keys(runtime, pairs, Key(Value(by == "key" ? 0 : 1), params.flag(0, false), false));
  sort_by_key(runtime, keyed, params.flag(2, false));
  return Value::list(items_of(std::move(keyed)));
}

Value filter_sort(Runtime& runtime, const Value& input, const Args& args) {
  const Params params("sort", args, {"reverse", "case_sensitive", "attribute"}, 0);
  const Key key(params[2], params.flag(1, false), true);
  std::vector<Keyed> keyed = with_keys(runtime, runtime.iterate(input), key);
  sort_by_key(runtime, keyed, params.flag(0, false));
  return Value::list(items_of(std::move(keyed)));
}

Value filter_unique(Runtime& runtime, const Value& input, const Args& args) {
  const Params params("unique", args, {"case_sensitive", "attribute"}, 0);
  const Key key(params[1], params.flag(0, false), false);
  return lazily([&](const Emit& emit) {
    Dict seen;
    for (const Value& item : runtime.iterate(input)) {
      Value unique = key.of(runtime, item);
      runtime.charge(unique.weight());
      if (seen.find(unique)) continue;
      seen.set(std::move(unique), {});
      emit(item);
    }
  });
}

template <bool largest>
Value extreme(Runtime& runtime, const Value& input, const Args& args) {
  const Params params("min or max", args, {"case_sensitive", "attribute"}, 0);
  const Key key(params[1], params.flag(0, false), false);
  const std::vector<Keyed> keyed = with_keys(runtime, runtime.iterate(input), key);
  if (keyed.empty()) return Value::undefined("there is no smallest or largest item: the sequence is empty");
  const Keyed* best = &keyed.front();
  for (const Keyed& entry : keyed) {
    runtime.charge(std::min(entry.key.weight(), best->key.weight()));
    if (largest ? less(best->key, entry.key, ">") : less(entry.key, best->key)) best = &entry;
  }
  return best->item;
}

Value filter_sum(Runtime& runtime, const Value& input, const Args& args) {
  const Params params("sum", args, {"attribute", "start"}, 0);
  const Path path(params[0]);
  Value total = params.has(1) ? params[1] : Value(0);
  if (total.is_text()) fail("sum() can't sum strings");
  for (const Value& item : runtime.iterate(input)) {
    total = binary(runtime, Arithmetic::kAdd, total, path.follow(runtime, item));
  }
  return total;
}

Value filter_groupby(Runtime& runtime, const Value& input, const Args& args) {
  const Params params("groupby", args, {"attribute", "default", "case_sensitive"}, 1);
  const Key key(params[0], params.flag(2, false), false, params[1]);
  const Path path(params[0], params[1]);
  std::vector<Keyed> keyed = with_keys(runtime, runtime.iterate(input), key);
  sort_by_key(runtime, keyed, false);
  std::vector<Value> groups;
  for (std::size_t begin = 0; begin < keyed.size();) {
    std::vector<Value> members;
    std::size_t end = begin;
    for (; end < keyed.size() && equal(keyed[end].key, keyed[begin].key); ++end) members.push_back(keyed[end].item);
    Value grouper = path.follow(runtime, keyed[begin].item);  // as the first item writes it
    groups.push_back(Value::tuple({std::move(grouper), Value::list(std::move(members))}, true));
    begin = end;
  }
  return Value::list(std::move(groups));
}

Value filter_batch(Runtime& runtime, const Value& input, const Args& args) {
  const Params params("batch", args, {"linecount", "fill_with"}, 1);
  return lazily([&](const Emit& emit) {
    const std::int64_t size = params.integer(0, 0);
    std::vector<Value> row;
    for (const Value& item : runtime.iterate(input)) {
      if (static_cast<std::int64_t>(row.size()) == size) emit(Value::list(std::exchange(row, {})));
      row.push_back(item);
    }
    if (row.empty()) return;
    while (!params[1].is_none() && static_cast<std::int64_t>(row.size()) < size) {
      runtime.charge(1);
      row.push_back(params[1]);
    }
    emit(Value::list(std::move(row)));
  });
}

Value filter_slice(Runtime& runtime, const Value& input, const Args& args) {
  const Params params("slice", args, {"slices", "fill_with"}, 1);
  return lazily([&](const Emit& emit) {
    const std::vector<Value> items = runtime.iterate(input);
    const std::int64_t slices = params.integer(0, 0), size = static_cast<std::int64_t>(items.size());
    if (slices == 0) fail("integer division or modulo by zero");
    auto from = items.begin();
    for (std::int64_t i = 0; i < slices; ++i) {
      runtime.charge(1);
      const bool extra = i < size % slices;
      const auto to = from + size / slices + extra;
      std::vector<Value> part(from, to);
      if (!extra && !params[1].is_none()) part.push_back(params[1]);
      emit(Value::list(std::move(part)));
      from = to;
    }
  });
}

const Value& text_argument(const Args& args, std::size_t i, std::string_view what) {
  if (args.positional.size() <= i) fail("missing " + std::string(what));
  return args.positional[i];
}

Args after(const Args& args, std::size_t used) {
  return {{args.positional.begin() + static_cast<std::ptrdiff_t>(used), args.positional.end()}, args.named};
}

Value filter_map(Runtime& runtime, const Value& input, const Args& args) {
  return lazily([&](const Emit& emit) {
    if (!truthy(input)) return;
    const bool by_attribute =
        args.positional.empty() &&
        std::any_of(args.named.begin(), args.named.end(), [](const auto& named) { return named.first == "attribute"; });
    if (by_attribute) {
      const Params params("map", args, {"attribute", "default"}, 1);
      const Path path(params[0], params[1]);
      for (const Value& item : runtime.iterate(input)) emit(path.follow(runtime, item));
      return;
    }
    const Value& name = text_argument(args, 0, "the name of the filter to map");
    const Filter* filter = name.is_text() ? find_filter(name.text()) : nullptr;
    if (!filter) fail("there is no filter " + repr(name));
    const Args rest = after(args, 1);
    for (const Value& item : runtime.iterate(input)) emit(filter->apply(runtime, item, rest));
  });
}

template <bool by_attribute, bool keep>
Value selected(Runtime& runtime, const Value& input, const Args& args) {
  return lazily([&](const Emit& emit) {
    if (!truthy(input)) return;
    const Path path(by_attribute ? text_argument(args, 0, "the attribute to select by") : Value());
    const std::size_t at = by_attribute ? 1 : 0;
    const Test* test = nullptr;
    if (args.positional.size() > at) {
      const Value& name = args.positional[at];
      test = name.is_text() ? find_test(name.text()) : nullptr;
      if (!test) fail("there is no test " + repr(name));
    }
    const Args rest = test ? after(args, at + 1) : Args{};
    for (const Value& item : runtime.iterate(input)) {
      const Value tested = path.follow(runtime, item);
      if ((test ? test->holds(runtime, tested, rest) : truthy(tested)) == keep) emit(item);
    }
  });
}

constexpr std::array kFilters = {
    Filter{"batch", filter_batch},
    Filter{"dictsort", filter_dictsort},
    Filter{"first", filter_first},
    Filter{"groupby", filter_groupby},
    Filter{"items", filter_items},
    Filter{"join", filter_join},
    Filter{"last", filter_last},
    Filter{"list", filter_list},
    Filter{"map", filter_map},
    Filter{"max", extreme<true>},
    Filter{"min", extreme<false>},
    Filter{"reject", selected<false, false>},
    Filter{"rejectattr", selected<true, false>},
    Filter{"reverse", filter_reverse},
    Filter{"select", selected<false, true>},
    Filter{"selectattr", selected<true, true>},
    Filter{"slice", filter_slice},
    Filter{"sort", filter_sort},
    Filter{"sum", filter_sum},
    Filter{"unique", filter_unique},
};

}  // namespace

const Filter* find_sequence_filter(std::string_view name) {
  const auto found = std::find_if(kFilters.begin(), kFilters.end(), [&](const Filter& f) { return f.name == name; });
  return found == kFilters.end() ? nullptr : &*found;
}

}  // namespace octavo::jinja
