// Safetensors: a JSON header with name, type, shape and place of every tensor, then their bytes without gaps.
// Format: the safetensors repository's specification.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octavo/result.h"
#include "tensor/tensor_type.h"

namespace octavo {

struct SafeTensor {
  std::string name;
  std::string dtype;               // as the file spells it: "BF16"
  std::optional<TensorType> type;  // of F32, F16 and BF16
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes = {};
};

struct SafeTensors {
  std::vector<SafeTensor> tensors;  // by name
  std::uint64_t header_bytes = 0;   // length field and JSON
};

/// Reads the header of a whole file; bytes point into `file`. `path` is for the messages. Sizes, shapes and places are
/// checked: the tensors cover the data section without overlaps or holes.
[[nodiscard]] Result<SafeTensors> parse_safetensors(const std::string& path, std::span<const std::byte> file);

}  // namespace octavo
