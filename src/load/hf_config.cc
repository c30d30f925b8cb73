#include "load/hf_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "load/json_fields.h"

namespace octavo {
namespace {

Error unsupported(const JsonFields& fields, const char* key, const std::string& why) {
  return fields.refuse(key, why, ErrorCode::kUnsupported);
}

/// What would change the computation and is not computed here.
Result<> refuse_unsupported(const JsonFields& config, const ArchRow& arch) {
  if (const auto* quantization = config.find("quantization_config"); quantization != nullptr) {
    return unsupported(config, "quantization_config", "asks for quantised weights; only F32, F16 and BF16 are read");
  }
  for (const char* key : {"attention_bias", "mlp_bias"}) {
    OCTAVO_TRY(const auto bias, config.get<bool>(key));
    if (bias == true) return unsupported(config, key, "is true; these biases are not supported");
  }
  OCTAVO_TRY(const auto bidirectional, config.get<bool>("use_bidirectional_attention"));
  if (bidirectional == true) {
    return unsupported(config, "use_bidirectional_attention", "is true; only causal attention is supported");
  }
  const bool gelu = arch.ffn == FfnKind::kGeGlu;
  // Gemma's first files say "gelu" in hidden_act and mean the tanh form; hidden_activation is the truth there.
  const char* key = gelu ? "hidden_activation" : "hidden_act";
  const std::string expected = gelu ? "gelu_pytorch_tanh" : "silu";
  OCTAVO_TRY(const auto activation, config.get<std::string>(key));
  if (activation && *activation != expected) {
    return unsupported(config, key,
                       fmt::format("is '{}'; this architecture is computed with {}", *activation, expected));
  }
  return Ok{};
}

/// One set of rope parameters: rope_scaling of version 4, or rope_parameters of version 5.
Result<> read_rope_parameters(const JsonFields& fields, RopeSpec& rope) {
  OCTAVO_TRY(const auto theta, fields.get<float>("rope_theta"));
  rope.base = theta.value_or(rope.base);
  OCTAVO_TRY(const auto old_type, fields.get<std::string>("type"));
  OCTAVO_TRY(const auto new_type, fields.get<std::string>("rope_type"));
  const std::string type = new_type ? *new_type : old_type.value_or("default");
  if (type == "default") return Ok{};
  if (type == "linear") {
    OCTAVO_TRY(rope.linear_factor, fields.require<float>("factor"));
    return Ok{};
  }
  if (type == "llama3") {
    OCTAVO_TRY(rope.llama3.factor, fields.require<float>("factor"));
    OCTAVO_TRY(rope.llama3.low_freq_factor, fields.require<float>("low_freq_factor"));
    OCTAVO_TRY(rope.llama3.high_freq_factor, fields.require<float>("high_freq_factor"));
    OCTAVO_TRY(rope.llama3.original_context, fields.require<std::uint32_t>("original_max_position_embeddings"));
    return Ok{};
  }
  return unsupported(fields, "rope_type", fmt::format("'{}' is not supported; default, linear and llama3 are", type));
}

Result<> read_rope(const JsonFields& config, const ArchRow& arch, ModelFacts& facts) {
  RopeSpec& rope = facts.rope;
  OCTAVO_TRY(const auto theta, config.get<float>("rope_theta"));
  rope.base = theta.value_or(arch.hf_rope_base);
  if (arch.local_rope_base != 0) {
    OCTAVO_TRY(facts.local_rope_base, config.get<float>("rope_local_base_freq"));
  }
  OCTAVO_TRY(const auto scaling, config.object("rope_scaling"));
  if (scaling) OCTAVO_CHECK_OK(read_rope_parameters(*scaling, rope));
  OCTAVO_TRY(auto parameters, config.object("rope_parameters"));
  if (parameters) {
    OCTAVO_TRY(const auto full, parameters->object("full_attention"));
    OCTAVO_TRY(const auto sliding, parameters->object("sliding_attention"));
    if (sliding) {
      RopeSpec local;
      local.base = facts.local_rope_base.value_or(arch.local_rope_base);
      OCTAVO_CHECK_OK(read_rope_parameters(*sliding, local));
      if (local.linear_factor != 1 || local.llama3.factor != 0) {
        return unsupported(*sliding, "rope_type", "scales the rope of layers with a window; that is not supported");
      }
      facts.local_rope_base = local.base;
    }
    OCTAVO_CHECK_OK(read_rope_parameters(full ? *full : *parameters, rope));
    if (full) parameters = full;
  }
  OCTAVO_TRY(const auto top_share, config.get<float>("partial_rotary_factor"));
  OCTAVO_TRY(const auto share,
             parameters ? parameters->get<float>("partial_rotary_factor") : Result(std::optional<float>()));
  if (share.value_or(top_share.value_or(1)) != 1) {
    return unsupported(config, "partial_rotary_factor", "is not 1; rotating a part of the head is not supported");
  }
  return Ok{};
}

Result<> read_layer_types(const JsonFields& config, ModelFacts& facts) {
  const nlohmann::json* types = config.find("layer_types");
  if (!types->is_array() || types->size() != facts.num_layers) {
    return config.refuse("layer_types", fmt::format("is not a list of {} entries, one a layer", facts.num_layers));
  }
  for (const nlohmann::json& type : *types) {
    if (type != "full_attention" && type != "sliding_attention") {
      return unsupported(config, "layer_types", "has entries other than full_attention and sliding_attention");
    }
    facts.has_window.push_back(type == "sliding_attention");
  }
  const bool any = std::find(facts.has_window.begin(), facts.has_window.end(), true) != facts.has_window.end();
  if (any && facts.window == 0U) return config.refuse("sliding_window", "is missing, but layer_types needs it");
  return Ok{};
}

Result<> read_windows(const JsonFields& config, const ArchRow& arch, bool says_window, ModelFacts& facts) {
  OCTAVO_TRY(facts.window, config.get<std::uint32_t>("sliding_window"));
  if (says_window && !facts.window) facts.window = 0;  // null
  OCTAVO_TRY(const auto use, config.get<bool>("use_sliding_window"));
  const bool opted_out = use == false || (!use && arch.window_rule == WindowRule::kUpperLayers);
  if (opted_out) {
    facts.window = 0;
    return Ok{};
  }
  if (config.find("layer_types") != nullptr) return read_layer_types(config, facts);
  if (arch.window_rule == WindowRule::kPeriodic) {
    OCTAVO_TRY(const auto period, config.get<std::uint32_t>("sliding_window_pattern"));
    OCTAVO_TRY(const auto old_period, config.get<std::uint32_t>("_sliding_window_pattern"));
    facts.window_period = period ? period : old_period;
  } else if (arch.window_rule == WindowRule::kUpperLayers) {
    OCTAVO_TRY(const auto first, config.require<std::uint32_t>("max_window_layers"));
    for (std::uint32_t i = 0; i < facts.num_layers; ++i) facts.has_window.push_back(i >= first);
  }
  return Ok{};
}

Result<> read_sizes(const JsonFields& config, const ArchRow& arch, ModelFacts& facts) {
  OCTAVO_TRY(facts.num_layers, config.require<std::uint32_t>("num_hidden_layers"));
  if (facts.num_layers == 0 || facts.num_layers > kMaxLayers) {
    return config.refuse("num_hidden_layers", fmt::format("is {}, it must be 1 to {}", facts.num_layers, kMaxLayers));
  }
  OCTAVO_TRY(facts.width, config.require<std::uint32_t>("hidden_size"));
  OCTAVO_TRY(facts.vocab_size, config.require<std::uint32_t>("vocab_size"));
  OCTAVO_TRY(facts.context_length, config.require<std::uint32_t>("max_position_embeddings"));
  OCTAVO_TRY(const auto heads, config.require<std::uint32_t>("num_attention_heads"));
  OCTAVO_TRY(const auto kv_heads, config.get<std::uint32_t>("num_key_value_heads"));
  OCTAVO_TRY(const auto ffn_width, config.require<std::uint32_t>("intermediate_size"));
  facts.num_heads.assign(facts.num_layers, heads);
  facts.num_kv_heads.assign(facts.num_layers, kv_heads.value_or(heads));
  facts.ffn_width.assign(facts.num_layers, ffn_width);
  OCTAVO_TRY(facts.head_dim, config.get<std::uint32_t>("head_dim"));
  if (!facts.head_dim && arch.hf_head_dim != 0) facts.head_dim = arch.hf_head_dim;
  OCTAVO_TRY(const auto eps, config.get<float>("rms_norm_eps"));
  facts.norm_eps = eps.value_or(1e-6F);
  return Ok{};
}

/// A soft-cap of null is none; one that is not mentioned is the row's.
Result<std::optional<float>> read_soft_cap(const JsonFields& config, const nlohmann::json& json, const char* key) {
  OCTAVO_TRY(const auto cap, config.get<float>(key));
  if (!cap && json.contains(key)) return std::optional(0.0F);
  return cap;
}

}  // namespace

Result<HfConfig> parse_hf_config(const std::string& path, std::string_view text) {
  OCTAVO_TRY(const nlohmann::json json, parse_json_object(path, text));
  const JsonFields config(path, json);
  HfConfig out;
  OCTAVO_TRY(out.model_type, config.require<std::string>("model_type"));
  out.arch = find_hf_arch(out.model_type);
  if (out.arch == nullptr) {
    return unsupported(config, "model_type",
                       fmt::format("'{}' is not supported; supported are {}", out.model_type, supported_hf_types()));
  }
  const ArchRow& arch = *out.arch;
  ModelFacts& facts = out.facts;
  OCTAVO_CHECK_OK(refuse_unsupported(config, arch));
  OCTAVO_CHECK_OK(read_sizes(config, arch, facts));
  OCTAVO_CHECK_OK(read_rope(config, arch, facts));
  OCTAVO_CHECK_OK(read_windows(config, arch, json.contains("sliding_window"), facts));
  OCTAVO_TRY(facts.attn_soft_cap, read_soft_cap(config, json, "attn_logit_softcapping"));
  OCTAVO_TRY(facts.final_soft_cap, read_soft_cap(config, json, "final_logit_softcapping"));
  OCTAVO_TRY(const auto query_scalar, config.get<float>("query_pre_attn_scalar"));
  if (query_scalar) facts.attn_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(*query_scalar)));
  OCTAVO_TRY(const auto tied, config.get<bool>("tie_word_embeddings"));
  facts.tied_embeddings = tied.value_or(arch.hf_tied);
  return out;
}

}  // namespace octavo
