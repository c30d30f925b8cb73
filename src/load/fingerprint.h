// Identifies the weights of a model without reading all of them.
#pragma once
#include <string>

#include "load/model_source.h"

namespace octavo {

/// SHA-256 in hex over every header (metadata, tensor tables, config.json) and the first and last 4 KiB of each tensor.
[[nodiscard]] std::string fingerprint_of(const ModelSource& source);

}  // namespace octavo
