#include "tensor/tensor_type.h"

#include <array>

#include "base/check.h"

namespace octavo {
namespace {

// Indexed by ggml's id. Block size 0: the name is known, the format is not read. No name: the id is not in use.
constexpr auto kTypes = std::to_array<TypeTraits>({
    {"F32", 1, 4},      {"F16", 1, 2},      {"Q4_0", 32, 18},   {"Q4_1", 32, 20},     {nullptr, 0, 0},
    {nullptr, 0, 0},    {"Q5_0", 32, 22},   {"Q5_1", 32, 24},   {"Q8_0", 32, 34},     {"Q8_1", 0, 0},
    {"Q2_K", 256, 84},  {"Q3_K", 256, 110}, {"Q4_K", 256, 144}, {"Q5_K", 256, 176},   {"Q6_K", 256, 210},
    {"Q8_K", 0, 0},     {"IQ2_XXS", 0, 0},  {"IQ2_XS", 0, 0},   {"IQ3_XXS", 0, 0},    {"IQ1_S", 0, 0},
    {"IQ4_NL", 32, 18}, {"IQ3_S", 0, 0},    {"IQ2_S", 0, 0},    {"IQ4_XS", 256, 136}, {"I8", 0, 0},
    {"I16", 0, 0},      {"I32", 0, 0},      {"I64", 0, 0},      {"F64", 0, 0},        {"IQ1_M", 0, 0},
    {"BF16", 1, 2},     {nullptr, 0, 0},    {nullptr, 0, 0},    {nullptr, 0, 0},      {"TQ1_0", 0, 0},
    {"TQ2_0", 0, 0},    {nullptr, 0, 0},    {nullptr, 0, 0},    {nullptr, 0, 0},      {"MXFP4", 32, 17},
    {"NVFP4", 0, 0},    {"Q1_0", 0, 0},     {"Q2_0", 0, 0},
});

}  // namespace

std::optional<TensorType> tensor_type_from_id(std::uint32_t id) {
  if (id >= kTypes.size() || kTypes[id].block_size == 0) return std::nullopt;
  return static_cast<TensorType>(id);
}

const TypeTraits& traits_of(TensorType type) {
  const auto id = static_cast<std::uint32_t>(type);
  OCTAVO_CHECK(tensor_type_from_id(id), "a TensorType must be one of the enumerators");
  return kTypes[id];
}

std::optional<TensorType> tensor_type_from_name(std::string_view name) {
  for (std::uint32_t id = 0; id < kTypes.size(); ++id) {
    const auto type = tensor_type_from_id(id);
    if (type && name == kTypes[id].name) return type;
  }
  return std::nullopt;
}

std::vector<std::string> tensor_type_names() {
  std::vector<std::string> names;
  for (const TypeTraits& type : kTypes) {
    if (type.block_size != 0) names.emplace_back(type.name);
  }
  return names;
}

const char* ggml_type_name(std::uint32_t id) { return id < kTypes.size() ? kTypes[id].name : nullptr; }

}  // namespace octavo
