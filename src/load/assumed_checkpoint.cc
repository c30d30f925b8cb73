#include "load/assumed_checkpoint.h"

#include <fmt/format.h>

#include <utility>

namespace octavo {

Result<AssumedCheckpoint> AssumedCheckpoint::make(ModelSpec spec, TensorType type, std::string path) {
  AssumedCheckpoint out;
  const TypeTraits& traits = traits_of(type);
  for (const TensorNeed& need : needs_of(spec)) {
    const bool widened = need.rows == 1 && traits.block_size != 1;
    const TensorShape shape{widened ? TensorType::kF32 : type, need.rows, need.cols};
    const TypeTraits& own = traits_of(shape.type);
    if (need.cols % own.block_size != 0) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("--weights-format {}: a row of {} weights is no whole number of its blocks of {}: take "
                               "a format with blocks of 32, like Q4_0 or Q8_0, or BF16",
                               own.name, need.cols, own.block_size),
                   "weights_format"};
    }
    const std::uint64_t elements = std::uint64_t{need.rows} * need.cols;
    out.info_.parameters += elements;
    out.info_.weights_bytes += elements / own.block_size * own.block_bytes;
    out.shapes_.emplace(need.key, shape);
  }
  out.info_.path = std::move(path);
  out.info_.architecture = spec.architecture;
  out.spec_ = std::move(spec);
  return out;
}

std::optional<TensorShape> AssumedCheckpoint::shape(Role role, std::uint32_t layer) const {
  const auto at = shapes_.find({role, role < Role::kAttnNorm ? 0 : layer});
  return at == shapes_.end() ? std::nullopt : std::optional(at->second);
}

}  // namespace octavo
