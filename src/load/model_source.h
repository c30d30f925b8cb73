// A container opened, before its tensors are bound to roles: what GGUF files and Hugging Face folders have in common.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_map.h"
#include "model/arch_table.h"
#include "model/spec.h"
#include "octavo/result.h"
#include "tensor/tensor_type.h"

namespace octavo {

struct StoredTensor {
  std::string_view name;
  std::string_view type_name;        // for people
  std::optional<TensorType> type;    // none: stored in a type that no kernel reads
  std::vector<std::uint64_t> shape;  // rows first: {rows, cols} or {cols}
  std::span<const std::byte> bytes = {};
  [[nodiscard]] std::uint64_t elements() const {
    std::uint64_t product = 1;  // the container's parser has bounded it by the file's size
    for (const std::uint64_t size : shape) product *= size;
    return product;
  }
};

struct ModelSource {
  std::string path, format;  // "GGUF v3", "safetensors"
  std::string architecture;  // as the container says
  std::uint64_t file_bytes = 0;
  const ArchRow* arch = nullptr;
  ModelFacts facts;
  const char* TensorName::*names = nullptr;  // which spelling of tensor names it uses
  bool interleaved_qk = false;               // q and k rows are in interleaved rope order
  bool gain_minus_one = false;               // norms are stored as gain - 1
  std::vector<StoredTensor> tensors;
  std::vector<std::string_view> side_tensors;  // read elsewhere or harmless: not an error if no role takes them
  std::vector<std::span<const std::byte>> headers;
  std::optional<std::string> chat_template;
  std::vector<std::string> warnings;
  std::vector<const FileMap*> maps;   // header and weights, in order
  std::shared_ptr<const void> files;  // keeps the bytes alive
};

[[nodiscard]] Result<ModelSource> open_gguf_source(const std::string& path);
[[nodiscard]] Result<ModelSource> open_hf_source(const std::string& folder);

}  // namespace octavo
