// The tests of `value is test`.
#include <algorithm>
#include <array>

#include "text/jinja_builtins.h"
#include "text/jinja_number.h"
#include "text/jinja_objects.h"
#include "text/jinja_operators.h"

namespace octavo::jinja {
namespace {

template <bool (*holds)(const Value&)>
bool plain(Runtime&, const Value& input, const Args& args) {
  const Params none("the test", args, {}, 0);
  return holds(input);
}

template <Comparison operation>
bool compared(Runtime& runtime, const Value& input, const Args& args) {
  const Params params("the test", args, {"other"}, 1);
  return compare(runtime, operation, input, params[0]);
}

bool remainder_is(Runtime& runtime, const Value& input, const Value& divisor, int expected) {
  return equal(binary(runtime, Arithmetic::kModulo, input, divisor), Value(expected));
}

bool test_odd(Runtime& runtime, const Value& input, const Args& args) {
  const Params none("odd", args, {}, 0);
  return remainder_is(runtime, input, Value(2), 1);
}

bool test_even(Runtime& runtime, const Value& input, const Args& args) {
  const Params none("even", args, {}, 0);
  return remainder_is(runtime, input, Value(2), 0);
}

bool test_divisibleby(Runtime& runtime, const Value& input, const Args& args) {
  const Params params("divisibleby", args, {"num"}, 1);
  return remainder_is(runtime, input, params[0], 0);
}

bool test_sameas(Runtime&, const Value& input, const Args& args) {
  const Params params("sameas", args, {"other"}, 1);
  return input.same_as(params[0]);
}

bool test_in(Runtime& runtime, const Value& input, const Args& args) {
  const Params params("in", args, {"seq"}, 1);
  return contains(runtime, params[0], input);
}

bool test_lower(Runtime& runtime, const Value& input, const Args& args) {
  const Params none("lower", args, {}, 0);
  return is_all_lower(runtime.text(input));
}

bool test_upper(Runtime& runtime, const Value& input, const Args& args) {
  const Params none("upper", args, {}, 0);
  return is_all_upper(runtime.text(input));
}

bool test_sequence(Runtime&, const Value& input, const Args& args) {
  const Params none("sequence", args, {}, 0);
  return input.is_text() || input.items() || input.dict() || input.is_undefined() || input.object_as<Range>();
}

bool is_defined(const Value& v) { return !v.is_undefined(); }
bool is_undefined(const Value& v) { return v.is_undefined(); }
bool is_none(const Value& v) { return v.is_none(); }
bool is_boolean(const Value& v) { return v.is_bool(); }
bool is_true(const Value& v) { return v.is_bool() && *v.boolean(); }
bool is_false(const Value& v) { return v.is_bool() && !*v.boolean(); }
bool is_integer(const Value& v) { return v.is_integer() && !v.is_bool(); }
bool is_float(const Value& v) { return v.is_float(); }
bool is_number(const Value& v) { return v.is_number(); }
bool is_string(const Value& v) { return v.is_text(); }
bool is_mapping(const Value& v) { return v.dict() != nullptr; }
bool is_iterable(const Value& v) { return iterable(v); }
bool is_callable(const Value& v) { return callable(v); }
bool is_escaped(const Value& v) { return v.is_markup(); }
bool is_filter(const Value& v) { return v.is_text() && find_filter(v.text()); }
bool is_test(const Value& v) { return v.is_text() && find_test(v.text()); }

constexpr std::array kTests = {
    Test{"!=", compared<Comparison::kNotEqual>},
    Test{"<", compared<Comparison::kLess>},
    Test{"<=", compared<Comparison::kLessEqual>},
    Test{"==", compared<Comparison::kEqual>},
    Test{">", compared<Comparison::kGreater>},
    Test{">=", compared<Comparison::kGreaterEqual>},
    Test{"boolean", plain<is_boolean>},
    Test{"callable", plain<is_callable>},
    Test{"defined", plain<is_defined>},
    Test{"divisibleby", test_divisibleby},
    Test{"eq", compared<Comparison::kEqual>},
    Test{"equalto", compared<Comparison::kEqual>},
    Test{"escaped", plain<is_escaped>},
    Test{"even", test_even},
    Test{"false", plain<is_false>},
    Test{"filter", plain<is_filter>},
    Test{"float", plain<is_float>},
    Test{"ge", compared<Comparison::kGreaterEqual>},
    Test{"greaterthan", compared<Comparison::kGreater>},
    Test{"gt", compared<Comparison::kGreater>},
    Test{"in", test_in},
    Test{"integer", plain<is_integer>},
    Test{"iterable", plain<is_iterable>},
    Test{"le", compared<Comparison::kLessEqual>},
    Test{"lessthan", compared<Comparison::kLess>},
    Test{"lower", test_lower},
    Test{"lt", compared<Comparison::kLess>},
    Test{"mapping", plain<is_mapping>},
    Test{"ne", compared<Comparison::kNotEqual>},
    Test{"none", plain<is_none>},
    Test{"number", plain<is_number>},
    Test{"odd", test_odd},
    Test{"sameas", test_sameas},
    Test{"sequence", test_sequence},
    Test{"string", plain<is_string>},
    Test{"test", plain<is_test>},
    Test{"true", plain<is_true>},
    Test{"undefined", plain<is_undefined>},
    Test{"upper", test_upper},
};

}  // namespace

const Test* find_test(std::string_view name) {
  const auto found = std::find_if(kTests.begin(), kTests.end(), [&](const Test& t) { return t.name == name; });
  return found == kTests.end() ? nullptr : &*found;
}

}  // namespace octavo::jinja
