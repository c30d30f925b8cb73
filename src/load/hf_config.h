// config.json of a Hugging Face folder to a model's facts, in the shapes of transformers 4 and 5.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "model/arch_table.h"
#include "model/spec.h"
#include "octavo/result.h"

namespace octavo {

struct HfConfig {
  const ArchRow* arch = nullptr;
  std::string model_type;
  ModelFacts facts;  // without name
};

/// `path` is for the messages. kUnsupported names what this build cannot compute: the model type, a rope type,
/// a quantisation, an activation, biases.
[[nodiscard]] Result<HfConfig> parse_hf_config(const std::string& path, std::string_view text);

}  // namespace octavo
