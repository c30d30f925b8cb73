// A model file opened: its spec, and its tensors in one canonical form, whatever the container.
//
// Canonical: matrices are [rows = outputs, cols = inputs], row-major blocks of `type`; q and k rows (and biases) are in
// half-split rope order (llama-arch GGUF stores them permuted: undone here); norm gains are the factors themselves
// (HF stores Gemma's as gain - 1: undone here).
// Threads: immutable after opening.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/file_map.h"
#include "model/spec.h"
#include "octavo/model_info.h"
#include "octavo/result.h"
#include "tensor/tensor_type.h"

namespace octavo {

/// What a tensor is for. Per layer from kAttnNorm on.
enum class Role : std::uint8_t {
  kTokenEmbedding,
  kOutputNorm,
  kOutput,
  kAttnNorm,
  kQ,
  kK,
  kV,
  kQBias,
  kKBias,
  kVBias,
  kQNorm,
  kKNorm,
  kAttnOutput,
  kPostAttnNorm,
  kFfnNorm,
  kGate,
  kUp,
  kDown,
  kPostFfnNorm,
};

struct TensorShape {
  TensorType type = TensorType::kF32;
  std::uint32_t rows = 0, cols = 0;  // a vector has rows = 1
};

struct SourceTensor : TensorShape {
  const std::byte* data = nullptr;  // may be unaligned; in the mapped file, or in `owned`
  std::shared_ptr<const void> owned;
};

class Checkpoint {
 public:
  virtual ~Checkpoint() = default;
  [[nodiscard]] virtual const ModelSpec& spec() const = 0;
  [[nodiscard]] virtual const ModelInfo& info() const = 0;  // all but the tokenizer part
  /// Sizes were checked against the spec on opening. A role that the spec does not have gives nullopt.
  [[nodiscard]] virtual std::optional<TensorShape> shape(Role role, std::uint32_t layer = 0) const = 0;
  /// Its bytes, which live as long as both the Checkpoint and the SourceTensor. Makes a copy of what is stored
  /// otherwise.
  [[nodiscard]] virtual std::optional<SourceTensor> tensor(Role role, std::uint32_t layer = 0) const = 0;

  /// The files it reads its header and weights from, in order.
  [[nodiscard]] virtual std::span<const FileMap* const> files() const = 0;
  /// SHA-256 (hex) of headers and tensor tables, of size, mtime and inode of every file, and of 4 KiB of every tensor:
  /// as long as it stays the same, so do the weights, as far as can be told without reading all of them.
  [[nodiscard]] virtual std::string source_key() const = 0;
};

}  // namespace octavo
