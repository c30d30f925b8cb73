#include "text/jinja_runtime.h"

#include <algorithm>

#include "text/jinja_builtins.h"
#include "text/jinja_number.h"
#include "text/jinja_objects.h"
#include "text/jinja_operators.h"
#include "text/jinja_unicode.h"

namespace octavo::jinja {
namespace {

const Value kNoValue;

std::string quote_text(std::string_view name) {
  std::string out;
  append_text_repr(name, out);
  return out;
}

std::string type_in_words(const Value& object) {
  if (object.is_none()) return "None";
  return std::string(type_name(object)) + " object";
}

Value missing(const Value& object, const Value& key) {
  if (key.is_text()) return Value::undefined(quote_text(type_in_words(object)) + " has no attribute " + repr(key));
  return Value::undefined(type_in_words(object) + " has no element " + repr(key));
}

/// The element at an integer key, if the object has elements in a row and this one exists.
std::optional<Value> element(const Value& object, const Value& key) {
  const auto index = as_index(key);
  if (!index) return std::nullopt;
  const auto place = [&](std::size_t size) -> std::optional<std::size_t> {
    const auto n = static_cast<std::int64_t>(size);
    if (*index < -n || *index >= n) return std::nullopt;
    return static_cast<std::size_t>(*index < 0 ? *index + n : *index);
  };
  if (const auto* items = object.items()) {
    const auto i = place(items->size());
    return i ? std::optional((*items)[*i]) : std::nullopt;
  }
  if (const auto* range = object.object_as<Range>()) {
    const auto i = place(range->size().value_or(0));
    return i ? std::optional(range->at(*i)) : std::nullopt;
  }
  if (!object.is_text()) return std::nullopt;
  const auto i = place(code_points(object.text()));
  if (!i) return std::nullopt;
  const std::size_t begin = byte_offset(object.text(), *i);
  std::size_t end = begin;
  (void)next_code_point(object.text(), end);
  return Value(object.text().substr(begin, end - begin), object.is_markup());
}

}  // namespace

Params::Params(std::string_view function, const Args& args, std::initializer_list<std::string_view> names,
               std::size_t required)
    : given_(names.size()) {
  const std::string name(function);
  if (args.positional.size() > names.size()) {
    fail(name + "() takes at most " + std::to_string(names.size()) + " arguments, got " +
         std::to_string(args.positional.size()));
  }
  for (std::size_t i = 0; i < args.positional.size(); ++i) given_[i] = &args.positional[i];
  for (const auto& [key, value] : args.named) {
    const auto found = std::find(names.begin(), names.end(), key);
    if (found == names.end()) fail(name + "() got an unexpected keyword argument '" + key + "'");
    const Value*& slot = given_[static_cast<std::size_t>(found - names.begin())];
    if (slot) fail(name + "() got multiple values for argument '" + key + "'");
    slot = &value;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (!given_[i]) fail(name + "() needs the argument '" + std::string(names.begin()[i]) + "'");
  }
}

const Value& Params::operator[](std::size_t i) const { return given_[i] ? *given_[i] : kNoValue; }

std::int64_t Params::integer(std::size_t i, std::int64_t otherwise) const {
  if (!has(i)) return otherwise;
  const auto value = as_index((*this)[i]);
  if (!value) fail("'" + std::string(type_name((*this)[i])) + "' object cannot be interpreted as an integer");
  return *value;
}

const std::string& Params::text(std::size_t i) const {
  const Value& value = (*this)[i];
  if (value.is_undefined()) fail(value.undefined_message());
  if (!value.is_text()) fail("expected str, got " + std::string(type_name(value)));
  return value.text();
}

Runtime::~Runtime() {
  for (const auto& made : namespaces_) made->clear();
}

void Runtime::remember(std::shared_ptr<Namespace> made) {
  charge(20);
  namespaces_.push_back(std::move(made));
}

void Runtime::charge(std::uint64_t steps) {
  steps_ += steps;
  if (steps_ > kMaxSteps) fail("rendering takes more than " + std::to_string(kMaxSteps) + " steps");
}

std::optional<Value> Runtime::own_attribute(const Value& object, std::string_view name) {
  if (name.starts_with('_')) return std::nullopt;
  if (Object* held = object.object()) return held->attribute(*this, name);
  if (const Tuple* tuple = object.tuple(); tuple && tuple->is_group) {
    if (name == "grouper") return tuple->items[0];
    if (name == "list") return tuple->items[1];
  }
  if (const Method* method = find_method(object, name)) {
    const auto call = method->call;
    return Value(std::make_shared<Function>(
        method->name, [call, object](Runtime& runtime, const Args& args) { return call(runtime, object, args); },
        object));
  }
  if (changes_in_place(object, name)) {
    return Value::undefined("access to attribute '" + std::string(name) + "' of '" + std::string(type_name(object)) +
                            "' object is unsafe");
  }
  return std::nullopt;
}

Value Runtime::attribute(const Value& object, std::string_view name) {
  if (object.is_undefined()) fail(object.undefined_message());
  if (auto found = own_attribute(object, name)) return std::move(*found);
  if (const Dict* dict = object.dict()) {
    if (const Value* value = dict->find(name)) return *value;
  }
  return missing(object, name);
}

Value Runtime::item(const Value& object, const Value& key) {
  if (object.is_undefined()) fail(object.undefined_message());
  if (const Dict* dict = object.dict(); dict && hashable(key)) {
    charge(key.weight());
    if (const Value* value = dict->find(key)) return *value;
  }
  if (object.is_text()) charge(object.weight());
  if (auto found = element(object, key)) return std::move(*found);
  if (key.is_text()) {
    if (auto found = own_attribute(object, key.text())) return std::move(*found);
  }
  return missing(object, key);
}

std::vector<Value> Runtime::iterate(const Value& value) {
  std::vector<Value> out;
  if (const auto* items = value.items()) {
    out = *items;
  } else if (const Dict* dict = value.dict()) {
    for (const auto& entry : dict->entries()) out.push_back(entry.first);
  } else if (value.is_text()) {
    charge(value.text().size());
    for (const std::string_view character : split_characters(value.text())) out.emplace_back(character);
  } else if (Object* object = value.object(); object && object->iterable()) {
    out = object->iterate();
  } else if (!value.is_undefined()) {
    fail("'" + std::string(type_name(value)) + "' object is not iterable");
  }
  charge(out.size());
  return out;
}

std::size_t Runtime::length(const Value& value) {
  if (value.is_text()) charge(value.weight());
  const auto size = size_of(value);
  if (!size) fail("object of type '" + std::string(type_name(value)) + "' has no len()");
  return *size;
}

Value Runtime::call(const Value& callee, const Args& args) {
  charge(2);
  if (callee.is_undefined()) fail(callee.undefined_message());
  Object* object = callee.object();
  if (!object || !object->callable()) fail("'" + std::string(type_name(callee)) + "' object is not callable");
  return object->call(*this, args);
}

std::string Runtime::text(const Value& value) {
  charge(value.weight());
  std::string out = str(value);
  charge(out.size() / 16);
  return out;
}

bool iterable(const Value& value) {
  if (const Object* object = value.object()) return object->iterable();
  return value.is_text() || value.items() || value.dict() || value.is_undefined();
}

std::optional<std::size_t> size_of(const Value& value) {
  if (value.is_text()) return code_points(value.text());
  if (const auto* items = value.items()) return items->size();
  if (const Dict* dict = value.dict()) return dict->size();
  if (const Object* object = value.object()) return object->size();
  if (value.is_undefined()) return 0;
  return std::nullopt;
}

bool callable(const Value& value) {
  if (const Object* object = value.object()) return object->callable();
  return value.is_undefined();
}

}  // namespace octavo::jinja
