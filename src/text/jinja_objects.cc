#include "text/jinja_objects.h"

#include <limits>

namespace octavo::jinja {
namespace {

constexpr int kMaxReprDepth = 100;  // of namespaces inside namespaces, which may form circles

}  // namespace

void Object::append_repr(std::string& out) const {
  out += '<';
  out += type_name();
  out += " object>";
}

void Function::append_repr(std::string& out) const { out += "<built-in function " + name_ + ">"; }

void Namespace::append_repr(std::string& out) const {
  thread_local int depth = 0;
  struct Guard {
    Guard() { ++depth; }
    ~Guard() { --depth; }
  } const guard;
  if (depth > kMaxReprDepth) fail("namespaces nest too deeply to be printed");
  out += "<Namespace {";
  bool first = true;
  for (const auto& [name, value] : attributes_.entries()) {
    if (!first) out += ", ";
    first = false;
    jinja::append_repr(name, out);
    out += ": ";
    jinja::append_repr(value, out);
  }
  out += "}>";
}

std::optional<Value> Namespace::attribute(Runtime&, std::string_view name) {
  const Value* value = attributes_.find(name);
  return value ? std::optional(*value) : std::nullopt;
}

Range::Range(std::int64_t start, std::int64_t stop, std::int64_t step) : start_(start), stop_(stop), step_(step) {
  if (step == 0) fail("range() arg 3 must not be zero");
  if (step > 0 ? start >= stop : start <= stop) return;
  const std::uint64_t distance = step > 0 ? static_cast<std::uint64_t>(stop) - static_cast<std::uint64_t>(start)
                                          : static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(stop);
  const std::uint64_t stride = step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  const std::uint64_t count = (distance - 1) / stride + 1;
  if (count > kMaxItems) {
    fail("range() of " + std::to_string(count) + " items is beyond the limit of " + std::to_string(kMaxItems));
  }
  count_ = count;
}

void Range::append_repr(std::string& out) const {
  out += "range(" + std::to_string(start_) + ", " + std::to_string(stop_);
  if (step_ != 1) out += ", " + std::to_string(step_);
  out += ')';
}

bool Range::equals(const Object& other) const {
  const auto* range = dynamic_cast<const Range*>(&other);
  if (!range || range->count_ != count_) return false;
  return count_ == 0 || (range->start_ == start_ && (count_ == 1 || range->step_ == step_));
}

std::vector<Value> Range::iterate() {
  std::vector<Value> out;
  out.reserve(count_);
  for (std::size_t i = 0; i < count_; ++i) out.push_back(at(i));
  return out;
}

std::optional<Value> Range::attribute(Runtime&, std::string_view name) {
  if (name == "start") return Value(start_);
  if (name == "stop") return Value(stop_);
  if (name == "step") return Value(step_);
  return std::nullopt;
}

Iterator::Iterator(std::vector<Value> items, std::string_view type) : items_(std::move(items)), type_(type) {
  for (const Value& item : items_) extent_.add(item);
}

std::vector<Value> Iterator::iterate() {
  std::vector<Value> out(items_.begin() + static_cast<std::ptrdiff_t>(at_), items_.end());
  at_ = items_.size();
  if (failure_) throw Failure(*failure_);
  return out;
}

std::optional<Value> Iterator::next() {
  if (at_ < items_.size()) return items_[at_++];
  if (failure_) throw Failure(*failure_);
  return std::nullopt;
}

DictView::DictView(Value dict, Kind kind) : dict_(std::move(dict)), kind_(kind) { extent_.add(dict_); }

std::string_view DictView::type_name() const {
  switch (kind_) {
    case Kind::kKeys: return "dict_keys";
    case Kind::kValues: return "dict_values";
    default: return "dict_items";
  }
}

std::vector<Value> DictView::items() const {
  std::vector<Value> out;
  out.reserve(dict_.dict()->size());
  for (const auto& [key, value] : dict_.dict()->entries()) {
    if (kind_ == Kind::kItems) {
      out.push_back(Value::tuple({key, value}));
    } else {
      out.push_back(kind_ == Kind::kKeys ? key : value);
    }
  }
  return out;
}

void DictView::append_repr(std::string& out) const {
  out += type_name();
  out += '(';
  jinja::append_repr(Value::list(items()), out);
  out += ')';
}

Cycler::Cycler(std::vector<Value> items) : items_(std::move(items)) {
  if (items_.empty()) fail("at least one item has to be provided");
  for (const Value& item : items_) extent_.add(item);
}

std::optional<Value> Cycler::attribute(Runtime&, std::string_view name) {
  if (name == "current") return items_[at_];
  if (name == "pos") return Value::length(at_);
  if (name == "items") return Value::tuple(items_);
  if (name != "next" && name != "reset") return std::nullopt;
  const bool moves = name == "next";
  return Value(std::make_shared<Function>(name, [self = shared_from_this(), moves](Runtime&, const Args& args) {
    const Params none("next", args, {}, 0);
    if (!moves) {
      self->at_ = 0;
      return Value();
    }
    Value current = self->items_[self->at_];
    self->at_ = (self->at_ + 1) % self->items_.size();
    return current;
  }));
}

Value Joiner::call(Runtime&, const Args& args) {
  const Params none("joiner", args, {}, 0);
  return std::exchange(used_, true) ? separator_ : Value("");
}

}  // namespace octavo::jinja
