// One metadata value of a GGUF file, still in the file's bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace octavo {

enum class GgufValueType : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

/// The parser has checked its structure, so reading needs no more bounds.
struct GgufValue {
  GgufValueType type = GgufValueType::kU8;  // of the value, or of the elements of an array
  bool is_array = false;                    // an array of arrays has type kArray; its elements cannot be read
  std::uint64_t count = 1;                  // elements
  std::span<const std::byte> bytes = {};    // of all elements

  /// The value as T, or nullopt if the file has another kind or the number does not fit. T is
  ///   bool, float, double, std::string_view;
  ///   std::int32_t, std::uint32_t, std::uint64_t: from any integer type that holds the number;
  ///   std::vector of bool, int32_t, uint32_t, float or string_view: from an array.
  template <class T>
  [[nodiscard]] std::optional<T> as() const;

  [[nodiscard]] std::string describe() const;  // "u32", "array of 49152 x string"
};

/// Bytes of one scalar of `type`; 0 for strings and arrays, whose size varies.
[[nodiscard]] std::uint32_t gguf_scalar_bytes(GgufValueType type);

}  // namespace octavo
