// What a tokenizer is, for ModelInfo.
#pragma once
#include <memory>

#include "octavo/model_info.h"
#include "octavo/result.h"
#include "octavo/tokenizer.h"

namespace octavo {

/// Puts the description of `tokenizer` into `info`; of one that cannot be loaded, unless there is none, a warning.
void describe_tokenizer(const Result<std::unique_ptr<Tokenizer>>& tokenizer, ModelInfo& info);

}  // namespace octavo
