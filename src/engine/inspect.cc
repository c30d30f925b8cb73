#include "engine/describe_tokenizer.h"
#include "load/open_checkpoint.h"
#include "octavo/model_info.h"
#include "octavo/tokenizer.h"

namespace octavo {
namespace {

TokenizerInfo describe(const Tokenizer& tokenizer) {
  TokenizerInfo info;
  info.description = tokenizer.description();
  info.vocab_size = tokenizer.vocab_size();
  info.bos = tokenizer.bos();
  info.eos = tokenizer.eos();
  const auto ends = tokenizer.end_of_generation();
  info.end_of_generation.assign(ends.begin(), ends.end());
  const std::vector<TokenId> empty_text = tokenizer.encode("", {});
  info.add_bos = info.bos && !empty_text.empty() && empty_text.front() == *info.bos;
  return info;
}

}  // namespace

void describe_tokenizer(const Result<std::unique_ptr<Tokenizer>>& tokenizer, ModelInfo& info) {
  if (tokenizer) {
    info.tokenizer = describe(**tokenizer);
  } else if (tokenizer.error().code != ErrorCode::kNotFound) {
    info.warnings.push_back(tokenizer.error().message);  // the rest is worth telling all the same
  }
}

Result<ModelInfo> inspect_model(const std::string& path, KvType kv_type) {
  OCTAVO_TRY(ModelInfo info, read_model_info(path, kv_type));
  describe_tokenizer(load_tokenizer(path), info);
  return info;
}

}  // namespace octavo
