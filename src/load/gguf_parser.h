// The bytes of one GGUF file to tables, every bound checked. GgufFile (gguf.h) is what others use.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "load/gguf_value.h"
#include "octavo/result.h"
#include "tensor/tensor_type.h"

namespace octavo {

struct GgufTensor {
  std::string_view name;
  TensorType type = TensorType::kF32;
  std::vector<std::uint64_t> dims;        // 1 to 4 sizes, the innermost first: a matrix is {cols, rows}
  std::span<const std::byte> bytes = {};  // may be unaligned for wide loads
};

struct GgufTables {
  std::uint32_t version = 0;
  std::map<std::string_view, GgufValue> metadata;
  std::vector<GgufTensor> tensors;  // in file order
  std::uint64_t header_bytes = 0;   // magic, metadata and tensor table
};

/// Reads the tables of a whole file. All views point into `bytes`; `path` is for the messages.
[[nodiscard]] Result<GgufTables> parse_gguf(const std::string& path, std::span<const std::byte> bytes);

}  // namespace octavo
