// The tokenizer.ggml.* keys of a GGUF file as a Vocab.
#pragma once
#include "load/gguf.h"
#include "octavo/result.h"
#include "text/vocab.h"

namespace octavo {

/// Absent keys take the defaults of their kind. kUnsupported: another tokenizer.ggml.model. kNotFound: no vocabulary.
/// make_tokenizer() checks the rest.
[[nodiscard]] Result<Vocab> vocab_from_gguf(const GgufFile& file);

}  // namespace octavo
