// A parsed chat template: expressions and statements as plain data. Nodes live in the Ast and point to each other.
#pragma once
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja_number.h"
#include "text/jinja_value.h"

namespace octavo::jinja {

struct Expr;
struct Stmt;
struct Filter;
struct Test;
using ExprPtr = const Expr*;
using Body = std::vector<const Stmt*>;

struct Arguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr star = nullptr;         // *list
  ExprPtr double_star = nullptr;  // **dict
};

enum class Comparison : std::uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };

struct Literal {
  Value value;
};
struct Name {
  std::string name;
};
struct ListExpr {
  std::vector<ExprPtr> items;
};
struct TupleExpr {
  std::vector<ExprPtr> items;
};
struct DictExpr {
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};
struct Unary {
  enum class Op : std::uint8_t { kNot, kMinus, kPlus } op;
  ExprPtr operand;
};
struct Binary {
  Arithmetic op;
  ExprPtr left, right;
};
struct Logical {  // the value of the operand that decided
  bool is_and;
  ExprPtr left, right;
};
struct Compare {  // a < b < c is a < b and b < c
  ExprPtr first;
  std::vector<std::pair<Comparison, ExprPtr>> rest;
};
struct Concat {
  std::vector<ExprPtr> parts;
};
struct Conditional {
  ExprPtr test, yes, no;  // no `no`: undefined
};
struct Attribute {
  ExprPtr object;
  std::string name;
};
struct Subscript {
  ExprPtr object, key;
};
struct SliceExpr {  // inside [ ]; absent parts are null
  ExprPtr object, start, stop, step;
};
struct CallExpr {
  ExprPtr callee;
  Arguments arguments;
};
struct FilterExpr {
  ExprPtr input;  // null: the text of the block around it
  std::string name;
  const Filter* filter;  // null: unknown; fails only when evaluated
  Arguments arguments;
};
struct TestExpr {
  ExprPtr input;
  std::string name;
  const Test* test;
  Arguments arguments;
};

struct Expr {
  std::uint32_t line;
  std::variant<Literal, Name, ListExpr, TupleExpr, DictExpr, Unary, Binary, Logical, Compare, Concat, Conditional,
               Attribute, Subscript, SliceExpr, CallExpr, FilterExpr, TestExpr>
      node;
};

/// What `set` and `for` assign to: a name, an attribute of a namespace, or several of them.
struct Target {
  std::string name;
  std::optional<std::string> attribute;
  std::vector<Target> parts;  // not empty or `unpacks`: a tuple of targets, and no name
  bool unpacks = false;
};

struct Data {
  std::string text;
};
struct Print {
  std::vector<ExprPtr> values;
};
struct If {
  struct Branch {
    ExprPtr test;  // null: else
    Body body;
  };
  std::vector<Branch> branches;
};
struct For {
  Target target;
  ExprPtr iterable, condition;  // condition may be null
  bool recursive;
  Body body, otherwise;
};
struct Set {
  Target target;
  ExprPtr value;
};
struct SetBlock {
  Target target;
  ExprPtr filters;  // null, or a chain of filters around the text
  Body body;
};
struct Signature {
  std::vector<std::string> names;
  std::vector<ExprPtr> defaults;                                           // of the last names
  bool takes_caller = false, takes_kwargs = false, takes_varargs = false;  // the body mentions them
};
struct MacroDef {
  std::string name;
  Signature signature;
  Body body;
};
struct CallBlock {
  MacroDef caller;
  ExprPtr call;  // a CallExpr; null: the block is rendered in place (generation)
};
struct FilterBlock {
  ExprPtr filters;
  Body body;
};
struct With {
  std::vector<std::pair<Target, ExprPtr>> bindings;
  Body body;
};
struct Block {  // a named block: its own scope, seeing the template's variables only unless `scoped`
  bool scoped;
  Body body;
};
struct Break {};
struct Continue {};

struct Stmt {
  std::uint32_t line;
  std::variant<Data, Print, If, For, Set, SetBlock, MacroDef, CallBlock, FilterBlock, With, Block, Break, Continue>
      node;
};

struct Ast {
  std::deque<Expr> exprs;
  std::deque<Stmt> stmts;
  Body body;
};

}  // namespace octavo::jinja
