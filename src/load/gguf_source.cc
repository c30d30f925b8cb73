#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>

#include "load/byte_reader.h"
#include "load/gguf.h"
#include "load/model_source.h"

namespace octavo {
namespace {

constexpr std::string_view kEmbedding = "token_embd.weight", kOutput = "output.weight";
constexpr std::string_view kRopeFactors = "rope_freqs.weight", kQBias = "blk.0.attn_q.bias";

/// The keys under the architecture's prefix; remembers which were asked for, so that the rest can be told.
class ArchKeys {
 public:
  ArchKeys(const GgufFile& file, std::string_view arch) : file_(file), prefix_(fmt::format("{}.", arch)) {}

  template <class T>
  Result<std::optional<T>> get(std::string_view suffix) {
    return file_.get<T>(*asked_.insert(prefix_ + std::string(suffix)).first);
  }
  template <class T>
  Result<T> require(std::string_view suffix) {
    return file_.require<T>(*asked_.insert(prefix_ + std::string(suffix)).first);
  }
  Result<std::optional<std::vector<std::uint32_t>>> get_per_layer(std::string_view suffix, std::uint32_t layers) {
    return file_.get_per_layer(*asked_.insert(prefix_ + std::string(suffix)).first, layers);
  }
  [[nodiscard]] const GgufValue* find(std::string_view suffix) {
    return file_.find(*asked_.insert(prefix_ + std::string(suffix)).first);
  }
  [[nodiscard]] std::vector<std::string> ignored() const {
    std::vector<std::string> keys;
    for (const auto& [key, value] : file_.metadata()) {
      if (key.starts_with(prefix_) && !asked_.contains(std::string(key))) keys.emplace_back(key);
    }
    return keys;
  }
  [[nodiscard]] Error unsupported(std::string_view suffix, std::string_view what) const {
    return {ErrorCode::kUnsupported, fmt::format("{}: {}{}: {}", file_.path(), prefix_, suffix, what),
            prefix_ + std::string(suffix)};
  }

 private:
  const GgufFile& file_;
  std::string prefix_;
  std::set<std::string> asked_;
};

Result<std::vector<float>> read_rope_factors(const GgufFile& file) {
  const GgufTensor* tensor = file.find_tensor(kRopeFactors);
  if (tensor == nullptr) return std::vector<float>();
  if (tensor->type != TensorType::kF32 || tensor->dims.size() != 1) {
    return Error{ErrorCode::kUnsupported, fmt::format("{}: {} is not a row of F32", file.path(), kRopeFactors),
                 std::string(kRopeFactors)};
  }
  std::vector<float> factors(tensor->dims[0]);
  std::memcpy(factors.data(), tensor->bytes.data(), tensor->bytes.size());
  return factors;
}

Result<RopeSpec> read_rope(const GgufFile& file, ArchKeys& keys) {
  RopeSpec rope;
  OCTAVO_TRY(const auto base, keys.get<float>("rope.freq_base"));
  OCTAVO_TRY(const auto dims, keys.get<std::uint32_t>("rope.dimension_count"));
  OCTAVO_TRY(const auto type, keys.get<std::string_view>("rope.scaling.type"));
  OCTAVO_TRY(const auto factor, keys.get<float>("rope.scaling.factor"));
  OCTAVO_TRY(const auto old_factor, keys.get<float>("rope.scale_linear"));
  if (type && *type != "none" && *type != "linear") {
    return keys.unsupported("rope.scaling.type",
                            fmt::format("rope scaling '{}' is not supported; none and linear are", *type));
  }
  rope.base = base.value_or(rope.base);
  rope.rot_dims = dims.value_or(0);
  const float scaling = factor ? *factor : old_factor.value_or(0);
  if (type != "none" && scaling != 0) rope.linear_factor = scaling;  // 0 means unscaled
  OCTAVO_TRY(rope.factors, read_rope_factors(file));
  return rope;
}

/// The pattern is a period, or a flag per layer.
Result<> read_windows(ArchKeys& keys, ModelFacts& facts) {
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  OCTAVO_TRY(facts.window, keys.get<std::uint32_t>("attention.sliding_window"));
  const GgufValue* pattern = keys.find(kPattern);
  if (pattern == nullptr) return Ok{};
  if (!pattern->is_array) {
    OCTAVO_TRY(facts.window_period, keys.get<std::uint32_t>(kPattern));
    return Ok{};
  }
  OCTAVO_TRY(const auto flags, keys.require<std::vector<bool>>(kPattern));
  if (flags.size() != facts.num_layers) {
    return keys.unsupported(kPattern, fmt::format("{} flags for {} layers", flags.size(), facts.num_layers));
  }
  facts.has_window = flags;
  return Ok{};
}

Result<> read_attention(ArchKeys& keys, const ArchRow& arch, ModelFacts& facts) {
  OCTAVO_TRY(auto heads, keys.get_per_layer("attention.head_count", facts.num_layers));
  if (!heads) return keys.require<std::uint32_t>("attention.head_count").error();
  facts.num_heads = std::move(*heads);
  OCTAVO_TRY(auto kv_heads, keys.get_per_layer("attention.head_count_kv", facts.num_layers));
  facts.num_kv_heads = kv_heads ? std::move(*kv_heads) : facts.num_heads;
  OCTAVO_TRY(facts.head_dim, keys.get<std::uint32_t>("attention.key_length"));
  OCTAVO_TRY(const auto value_length, keys.get<std::uint32_t>("attention.value_length"));
  if (value_length && *value_length != facts.head_dim.value_or(facts.width / std::max(facts.num_heads.at(0), 1U))) {
    return keys.unsupported("attention.value_length", fmt::format("{} differs from the key length", *value_length));
  }
  OCTAVO_TRY(facts.norm_eps, keys.require<float>("attention.layer_norm_rms_epsilon"));
  OCTAVO_TRY(facts.attn_scale, keys.get<float>("attention.scale"));
  OCTAVO_TRY(facts.attn_soft_cap, keys.get<float>("attn_logit_softcapping"));
  OCTAVO_TRY(facts.final_soft_cap, keys.get<float>("final_logit_softcapping"));
  OCTAVO_TRY(const auto causal, keys.get<bool>("attention.causal"));
  if (causal == false) return keys.unsupported("attention.causal", "only causal attention is supported");
  if (arch.window_rule != WindowRule::kUpperLayers) OCTAVO_CHECK_OK(read_windows(keys, facts));
  if (arch.local_rope_base != 0) {
    OCTAVO_TRY(facts.local_rope_base, keys.get<float>("rope.freq_base_swa"));
  }
  return Ok{};
}

/// The rows of the embedding count; in a vocabulary-only file the key or the tokens do.
Result<std::uint32_t> read_vocab_size(const GgufFile& file, ArchKeys& keys, std::vector<std::string>& warnings) {
  OCTAVO_TRY(const auto declared, keys.get<std::uint32_t>("vocab_size"));
  const GgufValue* tokens = file.find("tokenizer.ggml.tokens");
  const std::uint64_t num_tokens = tokens != nullptr && tokens->is_array ? tokens->count : 0;
  const GgufTensor* embedding = file.find_tensor(kEmbedding);
  const std::uint64_t rows = embedding != nullptr && embedding->dims.size() == 2 ? embedding->dims[1]
                             : declared                                          ? *declared
                                                                                 : num_tokens;
  if (rows > UINT32_MAX || num_tokens > rows) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{}: {} tokens for an embedding of {} rows", file.path(), num_tokens, rows),
                 std::string(kEmbedding)};
  }
  if (declared && *declared != rows) {
    warnings.push_back(fmt::format("vocab_size says {}, the embedding has {} rows: those count", *declared, rows));
  }
  return static_cast<std::uint32_t>(rows);
}

Result<> read_facts(const GgufFile& file, ModelSource& source) {
  ArchKeys keys(file, source.architecture);
  ModelFacts& facts = source.facts;
  OCTAVO_TRY(const auto name, file.get<std::string_view>("general.name"));
  facts.name = name ? std::string(*name) : std::filesystem::path(file.path()).stem().string();
  OCTAVO_TRY(facts.num_layers, keys.require<std::uint32_t>("block_count"));
  if (facts.num_layers == 0 || facts.num_layers > kMaxLayers) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: block_count is {}, it must be 1 to {}", file.path(), facts.num_layers, kMaxLayers),
                 "block_count"};
  }
  OCTAVO_TRY(facts.width, keys.require<std::uint32_t>("embedding_length"));
  OCTAVO_TRY(facts.context_length, keys.require<std::uint32_t>("context_length"));
  OCTAVO_TRY(auto ffn_width, keys.get_per_layer("feed_forward_length", facts.num_layers));
  if (!ffn_width) return keys.require<std::uint32_t>("feed_forward_length").error();
  facts.ffn_width = std::move(*ffn_width);
  OCTAVO_TRY(const auto experts, keys.get<std::uint32_t>("expert_count"));
  if (experts.value_or(0) != 0) {
    return keys.unsupported("expert_count", fmt::format("mixtures of experts ({}) are not supported", *experts));
  }
  OCTAVO_CHECK_OK(read_attention(keys, *source.arch, facts));
  OCTAVO_TRY(facts.rope, read_rope(file, keys));
  OCTAVO_TRY(facts.vocab_size, read_vocab_size(file, keys, source.warnings));
  facts.qkv_bias = file.find_tensor(kQBias) != nullptr;
  facts.tied_embeddings = file.find_tensor(kOutput) == nullptr;
  for (const std::string& key : keys.ignored())
    source.warnings.push_back(fmt::format("metadata key {} is ignored", key));
  return Ok{};
}

}  // namespace

Result<ModelSource> open_gguf_source(const std::string& path) {
  OCTAVO_TRY(GgufFile opened, GgufFile::open(path));
  const auto file = std::make_shared<const GgufFile>(std::move(opened));

  ModelSource source;
  source.path = path;
  source.format = fmt::format("GGUF v{}", file->version());
  source.file_bytes = file->file_bytes();
  OCTAVO_TRY(const auto arch, file->require<std::string_view>("general.architecture"));
  source.architecture = arch;
  source.arch = find_gguf_arch(arch);
  if (source.arch == nullptr) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("{}: architecture '{}' is not supported; supported are {}", path, arch, supported_gguf_archs()),
        "general.architecture"};
  }
  source.names = &TensorName::gguf;
  source.interleaved_qk = source.arch->gguf_interleaved_qk;
  OCTAVO_CHECK_OK(read_facts(*file, source));
  OCTAVO_TRY(const auto chat_template, file->get<std::string_view>("tokenizer.chat_template"));
  if (chat_template) source.chat_template = std::string(*chat_template);

  for (const GgufTensor& tensor : file->tensors()) {
    source.tensors.push_back({.name = tensor.name,
                              .type_name = traits_of(tensor.type).name,
                              .type = tensor.type,
                              .shape = {tensor.dims.rbegin(), tensor.dims.rend()},
                              .bytes = tensor.bytes});
  }
  source.side_tensors = {kRopeFactors};
  source.headers = file->headers();
  source.maps = file->maps();
  source.files = file;
  return source;
}

}  // namespace octavo
