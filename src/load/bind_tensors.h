// Which stored tensor plays which role, sizes checked.
#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "load/model_source.h"
#include "model/checkpoint.h"
#include "octavo/result.h"

namespace octavo {

/// A role and, from Role::kAttnNorm on, a layer; 0 for the others.
using TensorKey = std::pair<Role, std::uint32_t>;

/// A vector has one row.
struct TensorNeed {
  TensorKey key;
  std::uint32_t rows, cols;
};

/// All tensors of such a model, in the order of its layers.
[[nodiscard]] std::vector<TensorNeed> needs_of(const ModelSpec& spec);

/// Every tensor that `spec` needs, as the container stores it. Fails naming a tensor that is missing, has the wrong
/// size or an unread type, or that the computation would leave out.
[[nodiscard]] Result<std::map<TensorKey, SourceTensor>> bind_tensors(const ModelSource& source, const ModelSpec& spec);

}  // namespace octavo
