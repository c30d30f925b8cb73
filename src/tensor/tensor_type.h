// Element types that model files store, with the sizes of their blocks. Numbers are ggml's type ids.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

enum class TensorType : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIQ4_NL = 20,
  kIQ4_XS = 23,
  kBF16 = 30,
  kMXFP4 = 39,
};

struct TypeTraits {
  const char* name;          // "Q4_K"
  std::uint32_t block_size;  // elements a block
  std::uint32_t block_bytes;
};

/// nullopt: an id this build does not know. Safe for foreign numbers.
[[nodiscard]] std::optional<TensorType> tensor_type_from_id(std::uint32_t id);
[[nodiscard]] const TypeTraits& traits_of(TensorType type);
/// By the name in its traits; nullopt: no type of this build.
[[nodiscard]] std::optional<TensorType> tensor_type_from_name(std::string_view name);
[[nodiscard]] std::vector<std::string> tensor_type_names();
/// "Q4_K" and the like for any id of the ggml list, also those we do not read; nullptr if unknown.
[[nodiscard]] const char* ggml_type_name(std::uint32_t id);

}  // namespace octavo
