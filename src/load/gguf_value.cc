#include "load/gguf_value.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "load/byte_reader.h"

namespace octavo {
namespace {

struct ValueTypeTraits {
  const char* name;
  std::uint32_t bytes;
};
constexpr std::array<ValueTypeTraits, 13> kValueTypes = {{{"u8", 1},
                                                          {"i8", 1},
                                                          {"u16", 2},
                                                          {"i16", 2},
                                                          {"u32", 4},
                                                          {"i32", 4},
                                                          {"f32", 4},
                                                          {"bool", 1},
                                                          {"string", 0},
                                                          {"array", 0},
                                                          {"u64", 8},
                                                          {"i64", 8},
                                                          {"f64", 8}}};

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

template <class To, class From>
std::optional<To> fit(From number) {
  if (!std::in_range<To>(number)) return std::nullopt;
  return static_cast<To>(number);
}

/// The element at `at` as T; advances `at` past it.
template <class T>
std::optional<T> take_element(GgufValueType type, const std::byte*& at) {
  const std::byte* start = at;
  at += gguf_scalar_bytes(type);
  if constexpr (std::is_same_v<T, std::string_view>) {
    if (type != GgufValueType::kString) return std::nullopt;
    const auto length = load_unaligned<std::uint64_t>(start);
    at = start + sizeof length + length;
    return std::string_view(reinterpret_cast<const char*>(start) + sizeof length, length);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (type != GgufValueType::kBool) return std::nullopt;
    return *start != std::byte{0};
  } else if constexpr (std::is_floating_point_v<T>) {
    if (type == GgufValueType::kF32) return static_cast<T>(load_unaligned<float>(start));
    if (type == GgufValueType::kF64) return static_cast<T>(load_unaligned<double>(start));
    return std::nullopt;
  } else {
    switch (type) {
      case GgufValueType::kU8: return fit<T>(load_unaligned<std::uint8_t>(start));
      case GgufValueType::kI8: return fit<T>(load_unaligned<std::int8_t>(start));
      case GgufValueType::kU16: return fit<T>(load_unaligned<std::uint16_t>(start));
      case GgufValueType::kI16: return fit<T>(load_unaligned<std::int16_t>(start));
      case GgufValueType::kU32: return fit<T>(load_unaligned<std::uint32_t>(start));
      case GgufValueType::kI32: return fit<T>(load_unaligned<std::int32_t>(start));
      case GgufValueType::kU64: return fit<T>(load_unaligned<std::uint64_t>(start));
      case GgufValueType::kI64: return fit<T>(load_unaligned<std::int64_t>(start));
      default: return std::nullopt;
    }
  }
}

}  // namespace

std::uint32_t gguf_scalar_bytes(GgufValueType type) { return kValueTypes[static_cast<std::uint32_t>(type)].bytes; }

template <class T>
std::optional<T> GgufValue::as() const {
  const std::byte* at = bytes.data();
  if constexpr (IsVector<T>::value) {
    if (!is_array) return std::nullopt;
    T elements;
    elements.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto element = take_element<typename T::value_type>(type, at);
      if (!element) return std::nullopt;
      elements.push_back(*element);
    }
    return elements;
  } else {
    if (is_array) return std::nullopt;
    return take_element<T>(type, at);
  }
}

template std::optional<bool> GgufValue::as() const;
template std::optional<float> GgufValue::as() const;
template std::optional<double> GgufValue::as() const;
template std::optional<std::string_view> GgufValue::as() const;
template std::optional<std::int32_t> GgufValue::as() const;
template std::optional<std::uint32_t> GgufValue::as() const;
template std::optional<std::uint64_t> GgufValue::as() const;
template std::optional<std::vector<std::int32_t>> GgufValue::as() const;
template std::optional<std::vector<std::uint32_t>> GgufValue::as() const;
template std::optional<std::vector<bool>> GgufValue::as() const;
template std::optional<std::vector<float>> GgufValue::as() const;
template std::optional<std::vector<std::string_view>> GgufValue::as() const;

std::string GgufValue::describe() const {
  const char* name = kValueTypes[static_cast<std::uint32_t>(type)].name;
  return is_array ? fmt::format("array of {} x {}", count, name) : name;
}

}  // namespace octavo
