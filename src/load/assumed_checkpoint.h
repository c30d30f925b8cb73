// A model whose sizes are known and whose weights are not there: a Checkpoint of tensors without bytes, so that what
// asks a checkpoint for shapes can be asked about a config.json alone.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "load/bind_tensors.h"
#include "model/checkpoint.h"
#include "octavo/result.h"

namespace octavo {

class AssumedCheckpoint final : public Checkpoint {
 public:
  /// All matrices are of `type`; vectors, too, or F32 beside blocks. Refuses rows that are no whole number of blocks.
  [[nodiscard]] static Result<AssumedCheckpoint> make(ModelSpec spec, TensorType type, std::string path);

  [[nodiscard]] const ModelSpec& spec() const override { return spec_; }
  [[nodiscard]] const ModelInfo& info() const override { return info_; }
  [[nodiscard]] std::optional<TensorShape> shape(Role role, std::uint32_t layer) const override;
  [[nodiscard]] std::optional<SourceTensor> tensor(Role, std::uint32_t) const override { return std::nullopt; }
  [[nodiscard]] std::span<const FileMap* const> files() const override { return {}; }
  [[nodiscard]] std::string source_key() const override { return ""; }

 private:
  AssumedCheckpoint() = default;
  ModelSpec spec_;
  ModelInfo info_;  // path, architecture, parameters and weights_bytes
  std::map<TensorKey, TensorShape> shapes_;
};

}  // namespace octavo
