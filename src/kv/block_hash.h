// Names of full blocks: SHA-256 chained over (parent, tokens), from a root of (domain tag, model fingerprint, salt).
//
// A name says everything that decides a block's KV: the model, all tokens up to its end, and whose cache it is. Fields
// carry their lengths, so no two inputs have the same encoding. Blocks found by name are still compared token by token.
#pragma once
#include <span>
#include <string_view>

#include "base/ids.h"
#include "kv/kv_types.h"

namespace octavo {

[[nodiscard]] BlockHash root_hash(std::string_view model_fingerprint, std::string_view salt);
[[nodiscard]] BlockHash child_hash(const BlockHash& parent, std::span<const TokenId> tokens);

}  // namespace octavo
