#include "text/jinja_eval.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "text/jinja_builtins.h"
#include "text/jinja_objects.h"
#include "text/jinja_operators.h"

namespace octavo::jinja {
namespace {

constexpr int kMaxDepth = 1200;  // nested evaluations; a macro calling itself takes about eight of them a call

/// The variables of one body. Names point into the Ast.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string_view, Value>> variables;

  Value* find(std::string_view name) {
    const auto found = std::find_if(variables.begin(), variables.end(), [&](const auto& v) { return v.first == name; });
    return found == variables.end() ? nullptr : &found->second;
  }
  void set(std::string_view name, Value value) {
    if (Value* present = find(name)) {
      *present = std::move(value);
    } else {
      variables.emplace_back(name, std::move(value));
    }
  }
};
using ScopePtr = std::shared_ptr<Scope>;

ScopePtr inner(const ScopePtr& parent) { return std::make_shared<Scope>(Scope{parent, {}}); }

enum class Flow : std::uint8_t { kNormal, kBreak, kContinue };

class Interpreter;

/// The special variable `loop`, and the walk itself: items that fail the loop's condition are passed over as late as
/// possible, since the body may change what the condition sees.
class Loop final : public Object, public std::enable_shared_from_this<Loop> {
 public:
  using Condition = std::function<bool(const Value&)>;
  using Recurse = std::function<Value(const Value&, std::int64_t depth0)>;

  Loop(std::vector<Value> items, Condition condition, Recurse recurse, std::int64_t depth0)
      : items_(std::move(items)), condition_(std::move(condition)), recurse_(std::move(recurse)), depth0_(depth0) {
    for (const Value& item : items_) extent_.add(item);
  }

  /// The next item to run the body for, or nullopt at the end.
  std::optional<Value> advance() {
    std::optional<Value> item = std::exchange(after_, std::nullopt);
    if (!item) item = pull();
    if (!item) return std::nullopt;
    ++index0_;
    before_ = std::exchange(current_, *item);
    return item;
  }

  [[nodiscard]] std::string_view type_name() const override { return "jinja2.runtime.LoopContext"; }
  [[nodiscard]] std::optional<std::size_t> size() const override {
    return condition_ ? std::nullopt : std::optional(items_.size());
  }
  [[nodiscard]] bool iterable() const override { return true; }
  [[nodiscard]] bool callable() const override { return true; }

  [[nodiscard]] Value call(Runtime&, const Args& args) override {
    const Params params("loop", args, {"iterable"}, 1);
    if (!recurse_) fail("the loop must have the 'recursive' marker to be called recursively");
    return recurse_(params[0], depth0_ + 1);
  }

  [[nodiscard]] std::optional<Value> attribute(Runtime&, std::string_view name) override {
    if (name == "index0") return Value(index0_);
    if (name == "index") return Value(index0_ + 1);
    if (name == "first") return Value(index0_ == 0);
    if (name == "last") return Value(!peek());
    if (name == "length") return Value(length());
    if (name == "revindex") return Value(length() - index0_);
    if (name == "revindex0") return Value(length() - index0_ - 1);
    if (name == "depth") return Value(depth0_ + 1);
    if (name == "depth0") return Value(depth0_);
    if (name == "previtem") return index0_ == 0 ? Value::undefined("there is no previous item") : before_;
    if (name == "nextitem") {
      auto next = peek();
      return next ? std::move(*next) : Value::undefined("there is no next item");
    }
    if (name == "cycle") return method(name, &Loop::cycle);
    if (name == "changed") return method(name, &Loop::changed);
    return std::nullopt;
  }

 private:
  Value method(std::string_view name, Value (Loop::*body)(const Args&)) {
    return Value(std::make_shared<Function>(
        name, [self = shared_from_this(), body](Runtime&, const Args& args) { return ((*self).*body)(args); }));
  }

  Value cycle(const Args& args) {
    if (args.positional.empty()) fail("no items for cycling given");
    return args.positional[static_cast<std::size_t>(index0_) % args.positional.size()];
  }

  /// Compares with what it was called with before. Remembers loops by nothing: they could hold this one.
  Value changed(const Args& args) {
    for (const Value& value : args.positional) {
      if (value.object()) fail("loop.changed() compares data, not objects");
    }
    Value now = Value::tuple(args.positional);
    if (changed_ && equal(*changed_, now)) return false;
    changed_ = std::move(now);
    return true;
  }

  std::optional<Value> pull() {
    while (at_ < items_.size()) {
      const Value& item = items_[at_++];
      if (!condition_ || condition_(item)) return item;
    }
    return std::nullopt;
  }

  std::optional<Value> peek() {
    if (!after_) after_ = pull();
    return after_;
  }

  std::int64_t length() {
    if (condition_) {  // look at all that is left, once
      std::vector<Value> rest;
      while (auto item = pull()) rest.push_back(std::move(*item));
      length_ = static_cast<std::int64_t>(rest.size()) + index0_ + 1 + (after_ ? 1 : 0);
      items_ = std::move(rest);
      at_ = 0;
      condition_ = nullptr;
    } else if (!length_) {
      length_ = static_cast<std::int64_t>(items_.size());
    }
    return *length_;
  }

  std::vector<Value> items_;
  std::size_t at_ = 0;
  Condition condition_;
  Recurse recurse_;
  std::int64_t depth0_, index0_ = -1;
  std::optional<std::int64_t> length_;
  Value before_, current_;
  std::optional<Value> after_, changed_;
};

class Macro final : public Object {
 public:
  Macro(Interpreter& interpreter, const MacroDef& definition, ScopePtr closure)
      : interpreter_(interpreter), definition_(definition), closure_(std::move(closure)) {}
  [[nodiscard]] std::string_view type_name() const override { return "jinja2.runtime.Macro"; }
  void append_repr(std::string& out) const override {
    out += "<Macro ";
    append_text_repr(definition_.name, out);
    out += '>';
  }
  [[nodiscard]] bool callable() const override { return true; }
  [[nodiscard]] Value call(Runtime&, const Args& args) override;
  [[nodiscard]] std::optional<Value> attribute(Runtime&, std::string_view name) override;

 private:
  Interpreter& interpreter_;
  const MacroDef& definition_;
  ScopePtr closure_;
};

class Interpreter {
 public:
  Interpreter(const Ast& ast, const Value& context, std::chrono::local_seconds now)
      : ast_(ast), context_(*context.dict()), runtime_(now) {}
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;
  /// Macros and the scopes they were made in hold each other: let go.
  ~Interpreter() {
    for (const ScopePtr& scope : captured_) scope->variables.clear();
  }

  std::string run() {
    std::string out;
    out_ = &out;
    (void)execute(ast_.body, root_);
    return out;
  }

  [[nodiscard]] std::uint32_t line() const { return line_; }

  /// Runs a macro's body with its arguments; returns what it printed.
  Value call_macro(const MacroDef& macro, const ScopePtr& closure, const Args& args) {
    ScopePtr scope = inner(closure);
    bind_arguments(macro, args, scope);
    return Value(captured([&] { (void)execute(macro.body, scope); }));
  }

 private:
  struct Depth {
    explicit Depth(int& d) : depth(d) {
      if (++depth > kMaxDepth) {
        --depth;
        fail("recursion nests too deeply");
      }
    }
    ~Depth() { --depth; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    int& depth;
  };

  // Output.

  void print(std::string_view text) {
    if (out_->size() + text.size() > kMaxTextBytes) fail("the output grew beyond the limit");
    *out_ += text;
  }

  /// What `body` prints, taken aside.
  template <class Body>
  std::string captured(Body body) {
    std::string text;
    struct Redirect {
      Redirect(std::string*& out, std::string* to) : out_(out), before_(std::exchange(out, to)) {}
      ~Redirect() { out_ = before_; }
      std::string*& out_;
      std::string* before_;
    };
    {
      const Redirect redirect(out_, &text);
      body();
    }
    runtime_.charge(text.size() / 16);
    return text;
  }

  // Statements.

  Flow execute(const Body& body, const ScopePtr& scope) {
    const Depth depth(depth_);
    for (const Stmt* stmt : body) {
      line_ = stmt->line;
      runtime_.charge(1);
      const Flow flow = std::visit([&](const auto& node) { return run(node, scope); }, stmt->node);
      if (flow != Flow::kNormal) return flow;
    }
    return Flow::kNormal;
  }

  Flow run(const Data& node, const ScopePtr&) {
    print(node.text);
    return Flow::kNormal;
  }

  Flow run(const Print& node, const ScopePtr& scope) {
    for (ExprPtr expr : node.values) {
      const Value value = evaluate(expr, scope);
      value.is_text() ? print(value.text()) : print(runtime_.text(value));
    }
    return Flow::kNormal;
  }

  Flow run(const If& node, const ScopePtr& scope) {
    for (const If::Branch& branch : node.branches) {
      if (!branch.test || truthy(evaluate(branch.test, scope))) return execute(branch.body, scope);
    }
    return Flow::kNormal;
  }

  Flow run(const For& node, const ScopePtr& scope) {
    const Value iterable = evaluate(node.iterable, scope);
    if (node.recursive) {
      print(recurse(node, scope, iterable, 0).text());
    } else {
      walk(node, scope, iterable, nullptr, 0);
    }
    return Flow::kNormal;
  }

  Value recurse(const For& node, const ScopePtr& scope, const Value& iterable, std::int64_t depth0) {
    const Depth depth(depth_);
    return Value(captured([&] {
      walk(
          node, scope, iterable,
          [this, &node, scope](const Value& items, std::int64_t d) { return recurse(node, scope, items, d); }, depth0);
    }));
  }

  void walk(const For& node, const ScopePtr& scope, const Value& iterable, Loop::Recurse again, std::int64_t depth0) {
    Loop::Condition condition;
    if (node.condition) {
      condition = [this, &node, scope](const Value& item) {
        const ScopePtr tested = inner(scope);
        assign(node.target, item, tested);
        return truthy(evaluate(node.condition, tested));
      };
    }
    const auto loop =
        std::make_shared<Loop>(runtime_.iterate(iterable), std::move(condition), std::move(again), depth0);
    bool none_finished = true;  // Jinja's rule for `else`: an iteration left by break or continue does not count
    ScopePtr body = inner(scope);
    while (auto item = loop->advance()) {
      runtime_.charge(4);                              // a step costs less than an iteration
      if (body.use_count() != 1) body = inner(scope);  // a macro kept it
      body->variables.clear();
      body->set("loop", Value(loop));
      assign(node.target, *item, body);
      const Flow flow = execute(node.body, body);
      if (flow == Flow::kBreak) break;
      if (flow == Flow::kNormal) none_finished = false;
    }
    if (none_finished && !node.otherwise.empty()) (void)execute(node.otherwise, inner(scope));
  }

  Flow run(const Set& node, const ScopePtr& scope) {
    assign(node.target, evaluate(node.value, scope), scope);
    return Flow::kNormal;
  }

  Flow run(const SetBlock& node, const ScopePtr& scope) {
    const ScopePtr body = inner(scope);
    Flow flow = Flow::kNormal;
    Value value(captured([&] { flow = execute(node.body, body); }));
    if (flow != Flow::kNormal) return flow;
    if (node.filters) value = filtered(node.filters, value, body);
    assign(node.target, value, scope);
    return Flow::kNormal;
  }

  Flow run(const FilterBlock& node, const ScopePtr& scope) {
    const ScopePtr body = inner(scope);
    Flow flow = Flow::kNormal;
    const Value text(captured([&] { flow = execute(node.body, body); }));
    if (flow != Flow::kNormal) return flow;
    print(runtime_.text(filtered(node.filters, text, body)));
    return Flow::kNormal;
  }

  Flow run(const MacroDef& node, const ScopePtr& scope) {
    scope->set(node.name, Value(make_macro(node, scope)));
    return Flow::kNormal;
  }

  Flow run(const CallBlock& node, const ScopePtr& scope) {
    if (!node.call) {
      (void)execute(node.caller.body, inner(scope));
      return Flow::kNormal;
    }
    const auto& call = std::get<CallExpr>(node.call->node);
    const Value callee = evaluate(call.callee, scope);
    Args args = evaluate(call.arguments, scope);
    args.named.emplace_back("caller", Value(make_macro(node.caller, scope)));
    print(runtime_.text(runtime_.call(callee, args)));
    return Flow::kNormal;
  }

  Flow run(const With& node, const ScopePtr& scope) {
    const ScopePtr body = inner(scope);
    for (const auto& [target, expr] : node.bindings) assign(target, evaluate(expr, scope), body);
    return execute(node.body, body);
  }

  Flow run(const Block& node, const ScopePtr& scope) { return execute(node.body, inner(node.scoped ? scope : root_)); }
  Flow run(const Break&, const ScopePtr&) { return Flow::kBreak; }
  Flow run(const Continue&, const ScopePtr&) { return Flow::kContinue; }

  std::shared_ptr<Macro> make_macro(const MacroDef& definition, const ScopePtr& scope) {
    runtime_.charge(20);
    if (captured_.empty() || captured_.back() != scope) captured_.push_back(scope);
    return std::make_shared<Macro>(*this, definition, scope);
  }

  void assign(const Target& target, const Value& value, const ScopePtr& scope) {
    if (target.unpacks) {
      unpack(target, value, scope);
    } else if (target.attribute) {
      const Value object = look_up(target.name, scope);
      auto* held = object.object_as<Namespace>();
      if (!held) fail("cannot assign attribute '" + *target.attribute + "' on a non-namespace object");
      held->set(*target.attribute, value);
    } else {
      scope->set(target.name, value);
    }
  }

  void unpack(const Target& target, const Value& value, const ScopePtr& scope) {
    if (!iterable(value)) fail("cannot unpack non-iterable " + std::string(type_name(value)) + " object");
    const std::vector<Value> parts = runtime_.iterate(value);
    const std::size_t wanted = target.parts.size();
    if (parts.size() > wanted) fail("too many values to unpack (expected " + std::to_string(wanted) + ")");
    if (parts.size() < wanted) {
      fail("not enough values to unpack (expected " + std::to_string(wanted) + ", got " + std::to_string(parts.size()) +
           ")");
    }
    for (std::size_t i = 0; i < wanted; ++i) assign(target.parts[i], parts[i], scope);
  }

  /// Positional arguments first, then named ones, then defaults; what is left goes to varargs and kwargs, if the body
  /// mentions them.
  void bind_arguments(const MacroDef& macro, const Args& args, const ScopePtr& scope) {
    const Signature& signature = macro.signature;
    const std::size_t count = signature.names.size(), positional = std::min(count, args.positional.size());
    std::vector<bool> used(args.named.size());
    const auto take = [&](std::string_view name) -> const Value* {
      for (std::size_t i = 0; i < args.named.size(); ++i) {
        if (args.named[i].first != name || used[i]) continue;
        used[i] = true;
        return &args.named[i].second;
      }
      return nullptr;
    };
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < count; ++i) {
      const Value* given = i < positional ? &args.positional[i] : take(signature.names[i]);
      given ? scope->set(signature.names[i], *given) : missing.push_back(i);
    }
    if (signature.takes_caller) {
      const Value* caller = take("caller");
      scope->set("caller", caller ? *caller : Value::undefined("No caller defined"));
    }
    Dict rest;
    for (std::size_t i = 0; i < args.named.size(); ++i) {
      if (used[i]) continue;
      if (!signature.takes_kwargs) {
        fail("macro '" + macro.name + "' takes no keyword argument '" + args.named[i].first + "'");
      }
      rest.set(Value(args.named[i].first), args.named[i].second);
    }
    if (signature.takes_kwargs) scope->set("kwargs", Value::dict(std::move(rest)));
    if (signature.takes_varargs) {
      scope->set("varargs", Value::tuple({args.positional.begin() + static_cast<std::ptrdiff_t>(positional),
                                          args.positional.end()}));
    } else if (args.positional.size() > count) {
      fail("macro '" + macro.name + "' takes not more than " + std::to_string(count) + " argument(s)");
    }
    for (const std::size_t i : missing) {  // a default may use the parameters before it
      const std::size_t from_end = count - i;
      scope->set(signature.names[i], from_end <= signature.defaults.size()
                                         ? evaluate(signature.defaults[signature.defaults.size() - from_end], scope)
                                         : Value::undefined("parameter '" + signature.names[i] + "' was not provided"));
    }
  }

  // Expressions.

  Value evaluate(ExprPtr expr, const ScopePtr& scope) {
    const Depth depth(depth_);
    line_ = expr->line;
    runtime_.charge(1);
    return std::visit([&](const auto& node) { return value_of(node, scope); }, expr->node);
  }

  std::vector<Value> evaluate(const std::vector<ExprPtr>& exprs, const ScopePtr& scope) {
    std::vector<Value> out;
    out.reserve(exprs.size());
    for (ExprPtr expr : exprs) out.push_back(evaluate(expr, scope));
    return out;
  }

  Args evaluate(const Arguments& arguments, const ScopePtr& scope) {
    Args out;
    out.positional = evaluate(arguments.positional, scope);
    for (const auto& [name, expr] : arguments.named) out.named.emplace_back(name, evaluate(expr, scope));
    if (arguments.star) {
      for (Value& value : runtime_.iterate(evaluate(arguments.star, scope))) out.positional.push_back(std::move(value));
    }
    if (arguments.double_star) {
      const Value named = evaluate(arguments.double_star, scope);
      if (!named.dict()) fail("the argument after ** must be a mapping, not " + std::string(type_name(named)));
      for (const auto& [key, value] : named.dict()->entries()) {
        if (!key.is_text()) fail("keywords must be strings");
        out.named.emplace_back(key.text(), value);
      }
    }
    return out;
  }

  Value look_up(std::string_view name, const ScopePtr& scope) {
    for (Scope* at = scope.get(); at; at = at->parent.get()) {
      if (const Value* value = at->find(name)) return *value;
      runtime_.charge(at->variables.size() / 16);
    }
    if (const Value* value = context_.find(name)) return *value;
    if (auto function = find_function(name)) return std::move(*function);
    std::string message;
    append_text_repr(name, message);
    return Value::undefined(message + " is undefined");
  }

  Value value_of(const Literal& node, const ScopePtr&) { return node.value; }
  Value value_of(const Name& node, const ScopePtr& scope) { return look_up(node.name, scope); }
  Value value_of(const ListExpr& node, const ScopePtr& scope) { return Value::list(evaluate(node.items, scope)); }
  Value value_of(const TupleExpr& node, const ScopePtr& scope) { return Value::tuple(evaluate(node.items, scope)); }

  Value value_of(const DictExpr& node, const ScopePtr& scope) {
    Dict out;
    for (const auto& [key, value] : node.entries) {
      Value evaluated = evaluate(key, scope);
      runtime_.charge(evaluated.weight());
      out.set(std::move(evaluated), evaluate(value, scope));
    }
    return Value::dict(std::move(out));
  }

  Value value_of(const Unary& node, const ScopePtr& scope) { return unary(node.op, evaluate(node.operand, scope)); }

  Value value_of(const Binary& node, const ScopePtr& scope) {
    const Value left = evaluate(node.left, scope);
    return binary(runtime_, node.op, left, evaluate(node.right, scope));
  }

  Value value_of(const Logical& node, const ScopePtr& scope) {
    Value left = evaluate(node.left, scope);
    return truthy(left) == node.is_and ? evaluate(node.right, scope) : left;
  }

  Value value_of(const Compare& node, const ScopePtr& scope) {
    Value left = evaluate(node.first, scope);
    for (const auto& [operation, expr] : node.rest) {
      Value right = evaluate(expr, scope);
      if (!compare(runtime_, operation, left, right)) return false;
      left = std::move(right);
    }
    return true;
  }

  Value value_of(const Concat& node, const ScopePtr& scope) {
    std::string out;
    for (ExprPtr part : node.parts) {
      const Value value = evaluate(part, scope);
      out += value.is_text() ? value.text() : runtime_.text(value);
      if (out.size() > kMaxTextBytes) fail("a text grew beyond the limit");
    }
    runtime_.charge(out.size() / 16);
    return Value(std::move(out));
  }

  Value value_of(const Conditional& node, const ScopePtr& scope) {
    if (truthy(evaluate(node.test, scope))) return evaluate(node.yes, scope);
    if (node.no) return evaluate(node.no, scope);
    return Value::undefined("the inline if was false and has no else");
  }

  Value value_of(const Attribute& node, const ScopePtr& scope) {
    return runtime_.attribute(evaluate(node.object, scope), node.name);
  }

  Value value_of(const Subscript& node, const ScopePtr& scope) {
    const Value object = evaluate(node.object, scope);
    return runtime_.item(object, evaluate(node.key, scope));
  }

  Value value_of(const SliceExpr& node, const ScopePtr& scope) {
    const auto part = [&](ExprPtr expr) { return expr ? evaluate(expr, scope) : Value(); };
    const Value object = evaluate(node.object, scope), start = part(node.start), stop = part(node.stop);
    return slice(runtime_, object, start, stop, part(node.step));
  }

  Value value_of(const CallExpr& node, const ScopePtr& scope) {
    const Value callee = evaluate(node.callee, scope);
    const Args args = evaluate(node.arguments, scope);
    return runtime_.call(callee, args);
  }

  Value value_of(const FilterExpr& node, const ScopePtr& scope) {
    const Value input = node.input ? evaluate(node.input, scope) : block_text_;
    if (!node.filter) fail("there is no filter '" + node.name + "'");
    const Args args = evaluate(node.arguments, scope);
    runtime_.charge(2);
    return node.filter->apply(runtime_, input, args);
  }

  Value value_of(const TestExpr& node, const ScopePtr& scope) {
    const Value input = evaluate(node.input, scope);
    if (!node.test) fail("there is no test '" + node.name + "'");
    return node.test->holds(runtime_, input, evaluate(node.arguments, scope));
  }

  /// A chain of filters whose innermost input is the text of a block.
  Value filtered(ExprPtr filters, const Value& text, const ScopePtr& scope) {
    block_text_ = text;
    return evaluate(filters, scope);
  }

  const Ast& ast_;
  const Dict& context_;
  Runtime runtime_;
  ScopePtr root_ = std::make_shared<Scope>();
  std::vector<ScopePtr> captured_;  // scopes that macros were made in
  std::string* out_ = nullptr;
  Value block_text_;
  int depth_ = 0;
  std::uint32_t line_ = 0;
};

Value Macro::call(Runtime&, const Args& args) { return interpreter_.call_macro(definition_, closure_, args); }

std::optional<Value> Macro::attribute(Runtime&, std::string_view name) {
  const Signature& signature = definition_.signature;
  if (name == "name") return Value(definition_.name);
  if (name == "caller") return Value(signature.takes_caller);
  if (name == "catch_kwargs") return Value(signature.takes_kwargs);
  if (name == "catch_varargs") return Value(signature.takes_varargs);
  if (name != "arguments") return std::nullopt;
  std::vector<Value> names(signature.names.begin(), signature.names.end());
  return Value::tuple(std::move(names));
}

}  // namespace

std::string render(const Ast& ast, const Value& context, std::chrono::local_seconds now) {
  Interpreter interpreter(ast, context, now);
  try {
    return interpreter.run();
  } catch (Failure& failure) {
    if (!failure.by_template) failure.message += " (chat template, line " + std::to_string(interpreter.line()) + ")";
    throw;
  }
}

}  // namespace octavo::jinja
