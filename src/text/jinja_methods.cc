// Methods of dict, list, tuple and numbers; those of text are in jinja_text_methods.cc.
#include <algorithm>
#include <array>
#include <cmath>

#include "text/jinja_builtins.h"
#include "text/jinja_number.h"
#include "text/jinja_objects.h"

namespace octavo::jinja {
namespace {

Value view(const Value& self, DictView::Kind kind) { return Value(std::make_shared<DictView>(self, kind)); }

Value dict_keys(Runtime&, const Value& self, const Args& args) {
  const Params none("keys", args, {}, 0);
  return view(self, DictView::Kind::kKeys);
}

Value dict_values(Runtime&, const Value& self, const Args& args) {
  const Params none("values", args, {}, 0);
  return view(self, DictView::Kind::kValues);
}

Value dict_items(Runtime&, const Value& self, const Args& args) {
  const Params none("items", args, {}, 0);
  return view(self, DictView::Kind::kItems);
}

Value dict_get(Runtime& runtime, const Value& self, const Args& args) {
  const Params params("get", args, {"key", "default"}, 1);
  runtime.charge(params[0].weight());
  const Value* found = self.dict()->find(params[0]);
  return found ? *found : params[1];
}

Value copy(Runtime&, const Value& self, const Args& args) {
  const Params none("copy", args, {}, 0);
  return self;
}

Value items_count(Runtime& runtime, const Value& self, const Args& args) {
  const Params params("count", args, {"value"}, 1);
  runtime.charge(self.weight());
  const auto& items = *self.items();
  return Value::length(static_cast<std::size_t>(
      std::count_if(items.begin(), items.end(), [&](const Value& item) { return equal(item, params[0]); })));
}

Value items_index(Runtime& runtime, const Value& self, const Args& args) {
  const Params params("index", args, {"value", "start", "stop"}, 1);
  runtime.charge(self.weight());
  const auto& items = *self.items();
  const auto size = static_cast<std::int64_t>(items.size());
  const auto place = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size); };
  const std::int64_t stop = place(params.integer(2, size));
  for (std::int64_t i = place(params.integer(1, 0)); i < stop; ++i) {
    if (equal(items[static_cast<std::size_t>(i)], params[0])) return i;
  }
  fail(repr(params[0]) + " is not in " + std::string(type_name(self)));
}

Value is_integer(Runtime&, const Value& self, const Args& args) {
  const Params none("is_integer", args, {}, 0);
  return std::isfinite(*self.real()) && *self.real() == std::trunc(*self.real());
}

Value integer_bit_length(Runtime&, const Value& self, const Args& args) {
  const Params none("bit_length", args, {}, 0);
  return bit_length(self);
}

constexpr std::array kDictMethods = {Method{"copy", copy}, Method{"get", dict_get}, Method{"items", dict_items},
                                     Method{"keys", dict_keys}, Method{"values", dict_values}};
constexpr std::array kListMethods = {Method{"copy", copy}, Method{"count", items_count}, Method{"index", items_index}};
constexpr std::array kTupleMethods = {Method{"count", items_count}, Method{"index", items_index}};
constexpr std::array kFloatMethods = {Method{"is_integer", is_integer}};
constexpr std::array kIntegerMethods = {Method{"bit_length", integer_bit_length}};

const Method* among(const auto& methods, std::string_view name) {
  const auto found = std::find_if(methods.begin(), methods.end(), [&](const Method& m) { return m.name == name; });
  return found == methods.end() ? nullptr : &*found;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

const Method* find_method(const Value& self, std::string_view name) {
  if (self.is_text()) return find_text_method(name);
  if (self.dict()) return among(kDictMethods, name);
  if (self.list()) return among(kListMethods, name);
  if (self.tuple()) return among(kTupleMethods, name);
  if (self.is_float()) return among(kFloatMethods, name);
  if (self.is_integer()) return among(kIntegerMethods, name);
  return nullptr;
}

bool changes_in_place(const Value& self, std::string_view name) {
  if (self.list()) {
    return is_one_of(name, {"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"});
  }
  return self.dict() && is_one_of(name, {"clear", "pop", "popitem", "setdefault", "update"});
}

}  // namespace octavo::jinja
