#include "text/jinja_parser.h"

#include <algorithm>
#include <initializer_list>

#include "text/jinja_builtins.h"
#include "text/jinja_lexer.h"

namespace octavo::jinja {
namespace {

using Words = std::initializer_list<std::string_view>;

constexpr int kMaxDepth = 400;

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData: return "text";
    case TokenKind::kPrintBegin: return "'{{'";
    case TokenKind::kPrintEnd: return "'}}'";
    case TokenKind::kBlockBegin: return "'{%'";
    case TokenKind::kBlockEnd: return "'%}'";
    case TokenKind::kEnd: return "the end of the template";
    default: return "'" + token.text + "'";
  }
}

bool is_constant_name(std::string_view name) {
  return name == "true" || name == "false" || name == "none" || name == "True" || name == "False" || name == "None";
}

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokenize(source)), ast_(std::make_unique<Ast>()) {}

  std::unique_ptr<const Ast> run() {
    ast_->body = body({});
    if (!unknown_.empty()) throw unknown_.front().error;
    return std::move(ast_);
  }

 private:
  // Tokens.

  [[nodiscard]] const Token& current() const { return tokens_[at_]; }
  [[nodiscard]] const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  [[nodiscard]] bool is(TokenKind kind) const { return current().kind == kind; }
  [[nodiscard]] bool is_op(std::string_view op) const { return is(TokenKind::kOperator) && current().text == op; }
  [[nodiscard]] bool is_word(std::string_view word) const { return is(TokenKind::kName) && current().text == word; }
  [[nodiscard]] bool is_any_word(Words words) const {
    return std::any_of(words.begin(), words.end(), [this](auto word) { return is_word(word); });
  }
  bool take_op(std::string_view op) {
    if (!is_op(op)) return false;
    take();
    return true;
  }
  bool take_word(std::string_view word) {
    if (!is_word(word)) return false;
    take();
    return true;
  }
  [[noreturn]] void fail_at(std::uint32_t line, std::string message) const {
    throw SyntaxError{line, std::move(message)};
  }
  [[noreturn]] void expected(std::string_view what) const {
    fail_at(current().line, "expected " + std::string(what) + ", got " + describe(current()));
  }
  void expect_op(std::string_view op) {
    if (!take_op(op)) expected("'" + std::string(op) + "'");
  }
  void expect_word(std::string_view word) {
    if (!take_word(word)) expected("'" + std::string(word) + "'");
  }
  void expect(TokenKind kind, std::string_view what) {
    if (!is(kind)) expected(what);
    take();
  }
  std::string expect_name() {
    if (!is(TokenKind::kName)) expected("a name");
    return take().text;
  }
  std::string expect_new_name() {
    if (is(TokenKind::kName) && is_constant_name(current().text)) fail_at(current().line, "can't assign to a constant");
    return expect_name();
  }

  // Bounds and bookkeeping.

  struct Depth {
    explicit Depth(Parser& parser) : depth(parser.depth_) {
      if (++depth > kMaxDepth) parser.fail_at(parser.current().line, "nested too deeply");
    }
    ~Depth() { --depth; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    int& depth;
  };

  /// A part compiled on its own: the body of a loop, macro or the like. Unknown filters in it are errors even if the
  /// part stands under a condition.
  struct Frame {
    explicit Frame(Parser& p) : parser(p), outer(p.frame_), outer_loops(p.loops_) { parser.frame_ = ++parser.frames_; }
    ~Frame() {
      parser.frame_ = outer;
      parser.loops_ = outer_loops;
    }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;
    Parser& parser;
    int outer, outer_loops;
  };

  struct Unknown {
    int frame;
    SyntaxError error;
  };

  /// What was unknown since `mark`, in this very frame, turned out to be conditional.
  void forgive_unknown(std::size_t mark) {
    const auto begin = unknown_.begin() + static_cast<std::ptrdiff_t>(mark);
    unknown_.erase(std::remove_if(begin, unknown_.end(), [this](const Unknown& u) { return u.frame == frame_; }),
                   unknown_.end());
  }

  template <class Node>
  ExprPtr make(std::uint32_t line, Node node) {
    return &ast_->exprs.emplace_back(Expr{line, std::move(node)});
  }
  template <class Node>
  const Stmt* make_stmt(std::uint32_t line, Node node) {
    return &ast_->stmts.emplace_back(Stmt{line, std::move(node)});
  }

  // Statements.

  /// Up to a block tag that starts with one of `ends`, whose name becomes the current token.
  Body body(Words ends) {
    const Depth depth(*this);
    Body out;
    const std::uint32_t begin_line = current().line;
    while (!is(TokenKind::kEnd)) {
      const Token& token = take();
      if (token.kind == TokenKind::kData) {
        out.push_back(make_stmt(token.line, Data{token.text}));
      } else if (token.kind == TokenKind::kPrintBegin) {
        const std::uint32_t line = token.line;
        ExprPtr value = tuple_expression();
        out.push_back(make_stmt(line, Print{{value}}));
        expect(TokenKind::kPrintEnd, "'}}'");
      } else {
        if (is_any_word(ends)) return out;
        if (const Stmt* stmt = statement(ends)) out.push_back(stmt);
        expect(TokenKind::kBlockEnd, "'%}'");
      }
    }
    if (ends.size() != 0) {
      fail_at(begin_line, "the template ends inside a block that needs '" + std::string(*(ends.end() - 1)) + "'");
    }
    return out;
  }

  /// The rest of an opening tag, then the body; leaves behind the closing tag's name.
  Body block_body(Words ends) {
    take_op(":");
    expect(TokenKind::kBlockEnd, "'%}'");
    return body(ends);
  }
  Body whole_body(std::string_view end) {
    Body out = block_body({end});
    take();
    return out;
  }

  const Stmt* statement(Words ends) {
    if (!is(TokenKind::kName)) expected("a tag name");
    const std::uint32_t line = current().line;
    const std::string tag = take().text;
    if (tag == "if") return if_statement(line);
    if (tag == "for") return for_statement(line);
    if (tag == "set") return set_statement(line);
    if (tag == "macro") return macro_statement(line);
    if (tag == "call") return call_statement(line);
    if (tag == "filter") return filter_statement(line);
    if (tag == "with") return with_statement(line);
    if (tag == "generation") return generation_statement(line);
    if (tag == "block") return block_statement(line);
    if (tag == "print") return print_statement(line);
    if (tag == "autoescape") return autoescape_statement(line);
    if (tag == "break" || tag == "continue") {
      if (loops_ == 0) fail_at(line, "'" + tag + "' outside a loop");
      return tag == "break" ? make_stmt(line, Break{}) : make_stmt(line, Continue{});
    }
    if (tag == "include" || tag == "import" || tag == "from" || tag == "extends") {
      fail_at(line, "'" + tag + "' needs other template files, but a chat template stands alone");
    }
    std::string message = "unknown tag '" + tag + "'";
    if (ends.size() != 0) message += "; the open block needs '" + std::string(*(ends.end() - 1)) + "'";
    fail_at(line, std::move(message));
  }

  const Stmt* if_statement(std::uint32_t line) {
    If node;
    const std::size_t mark = unknown_.size();
    for (bool more = true; more;) {
      ExprPtr test = tuple_expression(false);
      node.branches.push_back({test, block_body({"elif", "else", "endif"})});
      const std::string next = take().text;
      if (next == "else") node.branches.push_back({nullptr, whole_body("endif")});
      more = next == "elif";
    }
    forgive_unknown(mark);
    return make_stmt(line, std::move(node));
  }

  const Stmt* for_statement(std::uint32_t line) {
    For node{};
    node.target = target(false, "in");
    refuse_loop_target(node.target, line);
    expect_word("in");
    node.iterable = tuple_expression(false, "recursive");
    {
      const Frame frame(*this);
      if (take_word("if")) node.condition = expression();
    }
    node.recursive = take_word("recursive");
    bool has_else = false;
    {
      const Frame frame(*this);
      ++loops_;
      ++loop_bodies_;
      node.body = block_body({"endfor", "else"});
      --loop_bodies_;
      has_else = take().text == "else";
    }
    if (has_else) {
      const Frame frame(*this);
      node.otherwise = whole_body("endfor");
    }
    return make_stmt(line, std::move(node));
  }

  const Stmt* set_statement(std::uint32_t line) {
    Target to = target(true, "");
    if (loop_bodies_ > 0) refuse_loop_target(to, line);
    if (take_op("=")) {
      ExprPtr value = tuple_expression();
      return make_stmt(line, Set{std::move(to), value});
    }
    const Frame frame(*this);
    ExprPtr filters = filter_chain(nullptr);
    return make_stmt(line, SetBlock{std::move(to), filters, whole_body("endset")});
  }

  const Stmt* macro_statement(std::uint32_t line) {
    MacroDef node;
    node.name = expect_new_name();
    node.signature = signature();
    macro_body(node, "endmacro");
    return make_stmt(line, std::move(node));
  }

  const Stmt* call_statement(std::uint32_t line) {
    CallBlock node{};
    node.caller.name = "caller";
    if (is_op("(")) node.caller.signature = signature();
    node.call = expression();
    if (!std::holds_alternative<CallExpr>(node.call->node)) fail_at(line, "'call' needs a call, as in {% call f() %}");
    macro_body(node.caller, "endcall");
    return make_stmt(line, std::move(node));
  }

  const Stmt* generation_statement(std::uint32_t line) {
    CallBlock node{};
    macro_body(node.caller, "endgeneration");
    return make_stmt(line, std::move(node));
  }

  void macro_body(MacroDef& macro, std::string_view end) {
    const Frame frame(*this);
    loops_ = 0;
    open_macros_.push_back(&macro.signature);
    macro.body = whole_body(end);
    open_macros_.pop_back();
    Signature& signature = macro.signature;
    const auto named = [&](std::string_view name) {
      return std::find(signature.names.begin(), signature.names.end(), name) != signature.names.end();
    };
    signature.takes_caller = signature.takes_caller && !named("caller");
    signature.takes_kwargs = signature.takes_kwargs && !named("kwargs");
    signature.takes_varargs = signature.takes_varargs && !named("varargs");
  }

  Signature signature() {
    Signature out;
    expect_op("(");
    while (!is_op(")")) {
      if (!out.names.empty()) expect_op(",");
      out.names.push_back(expect_new_name());
      if (std::count(out.names.begin(), out.names.end(), out.names.back()) > 1) {
        fail_at(current().line, "two parameters are called '" + out.names.back() + "'");
      }
      if (take_op("=")) {
        out.defaults.push_back(expression());
      } else if (!out.defaults.empty()) {
        fail_at(current().line, "a parameter without default follows one with a default");
      }
    }
    take();
    return out;
  }

  const Stmt* filter_statement(std::uint32_t line) {
    const Frame frame(*this);
    ExprPtr filters = filter_chain(one_filter(nullptr));
    return make_stmt(line, FilterBlock{filters, whole_body("endfilter")});
  }

  const Stmt* with_statement(std::uint32_t line) {
    const Frame frame(*this);
    With node;
    while (!is(TokenKind::kBlockEnd)) {
      if (!node.bindings.empty()) expect_op(",");
      Target to = target(false, "");
      expect_op("=");
      node.bindings.emplace_back(std::move(to), expression());
    }
    node.body = whole_body("endwith");
    return make_stmt(line, std::move(node));
  }

  const Stmt* block_statement(std::uint32_t line) {
    const Frame frame(*this);
    loops_ = 0;
    const std::string name = expect_name();
    if (std::find(block_names_.begin(), block_names_.end(), name) != block_names_.end()) {
      fail_at(line, "block '" + name + "' is defined twice");
    }
    block_names_.push_back(name);
    Block node{};
    node.scoped = take_word("scoped");
    take_word("required");
    node.body = whole_body("endblock");
    take_word(name);
    return make_stmt(line, std::move(node));
  }

  const Stmt* print_statement(std::uint32_t line) {
    Print node;
    while (!is(TokenKind::kBlockEnd)) {
      if (!node.values.empty()) expect_op(",");
      node.values.push_back(expression());
    }
    return make_stmt(line, std::move(node));
  }

  const Stmt* autoescape_statement(std::uint32_t line) {
    const Frame frame(*this);
    const auto* literal = std::get_if<Literal>(&expression()->node);
    if (!literal || truthy(literal->value))
      fail_at(line, "'autoescape' can only be false: chat templates are not HTML");
    return make_stmt(line, With{{}, whole_body("endautoescape")});
  }

  // Targets.

  Target target(bool with_namespace, std::string_view end_word) {
    const Depth depth(*this);
    Target first;
    bool is_tuple = false;
    std::vector<Target> parts;
    while (!is(TokenKind::kBlockEnd) && !is_op(")") && (end_word.empty() || !is_word(end_word))) {
      parts.push_back(single_target(with_namespace));
      if (!take_op(",")) break;
      is_tuple = true;
    }
    if (parts.empty()) expected("a name to assign to");
    if (!is_tuple) return std::move(parts.front());
    first.unpacks = true;
    first.parts = std::move(parts);
    return first;
  }

  Target single_target(bool with_namespace) {
    if (take_op("(")) {
      Target inner = target(false, "");
      expect_op(")");
      return inner;
    }
    Target out;
    out.name = expect_new_name();
    if (with_namespace && take_op(".")) out.attribute = expect_name();
    return out;
  }

  void refuse_loop_target(const Target& to, std::uint32_t line) const {
    if (to.name == "loop" && !to.attribute) fail_at(line, "can't assign to the special variable 'loop'");
    for (const Target& part : to.parts) refuse_loop_target(part, line);
  }

  // Expressions, loosest binding first.

  ExprPtr tuple_expression(bool with_condition = true, std::string_view end_word = "", bool in_parentheses = false) {
    const std::uint32_t line = current().line;
    const auto at_end = [&] {
      return is(TokenKind::kPrintEnd) || is(TokenKind::kBlockEnd) || is_op(")") ||
             (!end_word.empty() && is_word(end_word));
    };
    std::vector<ExprPtr> items;
    bool is_tuple = false;
    while (!at_end()) {
      items.push_back(with_condition ? expression() : or_expression());
      if (!take_op(",")) break;
      is_tuple = true;
    }
    if (is_tuple || (items.empty() && in_parentheses)) return make(line, TupleExpr{std::move(items)});
    if (items.empty()) expected("an expression");
    return items.front();
  }

  ExprPtr expression() {
    const Depth depth(*this);
    const std::size_t mark = unknown_.size();
    const std::uint32_t line = current().line;
    ExprPtr value = or_expression();
    while (take_word("if")) {
      ExprPtr test = or_expression();
      ExprPtr otherwise = take_word("else") ? expression() : nullptr;
      value = make(line, Conditional{test, value, otherwise});
      forgive_unknown(mark);
    }
    return value;
  }

  ExprPtr or_expression() {
    const std::uint32_t line = current().line;
    ExprPtr left = and_expression();
    while (take_word("or")) left = make(line, Logical{false, left, and_expression()});
    return left;
  }

  ExprPtr and_expression() {
    const std::uint32_t line = current().line;
    ExprPtr left = not_expression();
    while (take_word("and")) left = make(line, Logical{true, left, not_expression()});
    return left;
  }

  ExprPtr not_expression() {
    const Depth depth(*this);
    const std::uint32_t line = current().line;
    if (take_word("not")) return make(line, Unary{Unary::Op::kNot, not_expression()});
    return comparison();
  }

  std::optional<Comparison> take_comparison() {
    static constexpr std::pair<std::string_view, Comparison> kOps[] = {
        {"==", Comparison::kEqual},     {"!=", Comparison::kNotEqual}, {"<", Comparison::kLess},
        {"<=", Comparison::kLessEqual}, {">", Comparison::kGreater},   {">=", Comparison::kGreaterEqual}};
    for (const auto& [text, op] : kOps) {
      if (take_op(text)) return op;
    }
    if (take_word("in")) return Comparison::kIn;
    if (is_word("not") && ahead().kind == TokenKind::kName && ahead().text == "in") {
      take();
      take();
      return Comparison::kNotIn;
    }
    return std::nullopt;
  }

  ExprPtr comparison() {
    const std::uint32_t line = current().line;
    ExprPtr first = sum();
    Compare node{first, {}};
    while (const auto op = take_comparison()) node.rest.emplace_back(*op, sum());
    return node.rest.empty() ? first : make(line, std::move(node));
  }

  ExprPtr sum() {
    const std::uint32_t line = current().line;
    ExprPtr left = concatenation();
    while (is_op("+") || is_op("-")) {
      const Arithmetic op = take().text == "+" ? Arithmetic::kAdd : Arithmetic::kSubtract;
      left = make(line, Binary{op, left, concatenation()});
    }
    return left;
  }

  ExprPtr concatenation() {
    const std::uint32_t line = current().line;
    std::vector<ExprPtr> parts{product()};
    while (take_op("~")) parts.push_back(product());
    return parts.size() == 1 ? parts.front() : make(line, Concat{std::move(parts)});
  }

  ExprPtr product() {
    const std::uint32_t line = current().line;
    ExprPtr left = power();
    for (;;) {
      Arithmetic op{};
      if (take_op("*")) {
        op = Arithmetic::kMultiply;
      } else if (take_op("/")) {
        op = Arithmetic::kDivide;
      } else if (take_op("//")) {
        op = Arithmetic::kFloorDivide;
      } else if (take_op("%")) {
        op = Arithmetic::kModulo;
      } else {
        return left;
      }
      left = make(line, Binary{op, left, power()});
    }
  }

  ExprPtr power() {  // binds to the left and looser than a sign, unlike Python
    const std::uint32_t line = current().line;
    ExprPtr left = unary(true);
    while (take_op("**")) left = make(line, Binary{Arithmetic::kPower, left, unary(true)});
    return left;
  }

  ExprPtr unary(bool with_filters) {
    const Depth depth(*this);
    const std::uint32_t line = current().line;
    ExprPtr value = nullptr;
    if (take_op("-")) {
      value = make(line, Unary{Unary::Op::kMinus, unary(false)});
    } else if (take_op("+")) {
      value = make(line, Unary{Unary::Op::kPlus, unary(false)});
    } else {
      value = primary();
    }
    value = postfix(value);
    return with_filters ? filters_and_tests(value) : value;
  }

  ExprPtr primary() {
    const Token& token = current();
    const std::uint32_t line = token.line;
    if (token.kind == TokenKind::kName) return name_or_constant();
    if (token.kind == TokenKind::kNumber) return make(line, Literal{take().number});
    if (token.kind == TokenKind::kString) {
      std::string text;
      while (is(TokenKind::kString)) text += take().text;
      return make(line, Literal{Value(std::move(text))});
    }
    if (take_op("(")) {
      ExprPtr inner = tuple_expression(true, "", true);
      expect_op(")");
      return inner;
    }
    if (take_op("[")) return list_literal(line);
    if (take_op("{")) return dict_literal(line);
    fail_at(line, "unexpected " + describe(token));
  }

  ExprPtr name_or_constant() {
    const std::uint32_t line = current().line;
    const std::string name = take().text;
    if (name == "true" || name == "True") return make(line, Literal{Value(true)});
    if (name == "false" || name == "False") return make(line, Literal{Value(false)});
    if (name == "none" || name == "None") return make(line, Literal{Value()});
    for (Signature* macro : open_macros_) {
      macro->takes_caller |= name == "caller";
      macro->takes_kwargs |= name == "kwargs";
      macro->takes_varargs |= name == "varargs";
    }
    return make(line, Name{name});
  }

  ExprPtr list_literal(std::uint32_t line) {
    ListExpr node;
    while (!is_op("]")) {
      node.items.push_back(expression());
      if (!take_op(",")) break;
    }
    expect_op("]");
    return make(line, std::move(node));
  }

  ExprPtr dict_literal(std::uint32_t line) {
    DictExpr node;
    while (!is_op("}")) {
      ExprPtr key = expression();
      expect_op(":");
      node.entries.emplace_back(key, expression());
      if (!take_op(",")) break;
    }
    expect_op("}");
    return make(line, std::move(node));
  }

  ExprPtr postfix(ExprPtr value) {
    for (;;) {
      const std::uint32_t line = current().line;
      if (take_op(".")) {
        value = attribute(value, line);
      } else if (take_op("[")) {
        value = subscript(value, line);
      } else if (is_op("(")) {
        value = make(line, CallExpr{value, arguments()});
      } else {
        return value;
      }
    }
  }

  ExprPtr attribute(ExprPtr object, std::uint32_t line) {
    if (is(TokenKind::kNumber) && current().number.is_integer()) {
      ExprPtr key = make(line, Literal{take().number});
      return make(line, Subscript{object, key});
    }
    if (!is(TokenKind::kName)) expected("a name or number after '.'");
    return make(line, Attribute{object, take().text});
  }

  ExprPtr subscript(ExprPtr object, std::uint32_t line) {
    const auto slice_part = [&]() -> ExprPtr { return is_op(":") || is_op("]") ? nullptr : expression(); };
    ExprPtr start = slice_part();
    if (take_op(":")) {
      ExprPtr stop = slice_part();
      ExprPtr step = take_op(":") ? slice_part() : nullptr;
      expect_op("]");
      return make(line, SliceExpr{object, start, stop, step});
    }
    std::vector<ExprPtr> keys;
    if (start) keys.push_back(start);
    while (take_op(",")) keys.push_back(expression());
    expect_op("]");
    ExprPtr key = keys.size() == 1 ? keys.front() : make(line, TupleExpr{std::move(keys)});
    return make(line, Subscript{object, key});
  }

  Arguments arguments() {
    Arguments out;
    const std::uint32_t line = current().line;
    const auto ensure = [&](bool ordered) {
      if (!ordered) fail_at(line, "a call's arguments are out of order: positional, named, *list, **dict");
    };
    expect_op("(");
    while (!is_op(")")) {
      if (take_op("*")) {
        ensure(!out.star && !out.double_star);
        out.star = expression();
      } else if (take_op("**")) {
        ensure(!out.double_star);
        out.double_star = expression();
      } else if (is(TokenKind::kName) && ahead().kind == TokenKind::kOperator && ahead().text == "=") {
        ensure(!out.double_star);
        std::string name = take().text;
        take();
        out.named.emplace_back(std::move(name), expression());
      } else {
        ensure(out.named.empty() && !out.star && !out.double_star);
        out.positional.push_back(expression());
      }
      if (!take_op(",")) break;
    }
    expect_op(")");
    return out;
  }

  ExprPtr filters_and_tests(ExprPtr value) {
    for (;;) {
      const std::uint32_t line = current().line;
      if (take_op("|")) {
        value = one_filter(value);
      } else if (is_word("is")) {
        value = test(value);
      } else if (is_op("(")) {
        value = make(line, CallExpr{value, arguments()});
      } else {
        return value;
      }
    }
  }

  ExprPtr filter_chain(ExprPtr value) {
    while (take_op("|")) value = one_filter(value);
    return value;
  }

  std::string dotted_name() {
    std::string name = expect_name();
    while (take_op(".")) name += "." + expect_name();
    return name;
  }

  ExprPtr one_filter(ExprPtr input) {
    const std::uint32_t line = current().line;
    FilterExpr node{input, dotted_name(), nullptr, {}};
    node.filter = find_filter(node.name);
    if (!node.filter) unknown_.push_back({frame_, {line, "there is no filter '" + node.name + "'"}});
    if (is_op("(")) node.arguments = arguments();
    return make(line, std::move(node));
  }

  ExprPtr test(ExprPtr input) {
    const std::uint32_t line = take().line;
    const bool negated = take_word("not");
    TestExpr node{input, dotted_name(), nullptr, {}};
    node.test = find_test(node.name);
    if (!node.test) unknown_.push_back({frame_, {line, "there is no test '" + node.name + "'"}});
    if (is_op("(")) {
      node.arguments = arguments();
    } else if (starts_test_argument()) {
      if (is_word("is")) fail_at(line, "tests can't be chained with 'is'");
      node.arguments.positional.push_back(postfix(primary()));
    }
    ExprPtr value = make(line, std::move(node));
    return negated ? make(line, Unary{Unary::Op::kNot, value}) : value;
  }

  [[nodiscard]] bool starts_test_argument() const {
    if (is(TokenKind::kName)) return !is_any_word({"else", "or", "and"});
    return is(TokenKind::kString) || is(TokenKind::kNumber) || is_op("[") || is_op("{");
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::unique_ptr<Ast> ast_;
  int depth_ = 0;
  int frame_ = 0, frames_ = 0;           // the frame being parsed; how many there were
  int loops_ = 0;                        // loops that a `break` here could leave
  int loop_bodies_ = 0;                  // loops around, macros or not
  std::vector<Unknown> unknown_;         // filters and tests that do not exist
  std::vector<Signature*> open_macros_;  // whose bodies are being parsed
  std::vector<std::string> block_names_;
};

}  // namespace

std::unique_ptr<const Ast> parse(std::string_view source) { return Parser(source).run(); }

}  // namespace octavo::jinja
