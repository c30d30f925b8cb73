// Whole models of a few kilobytes with random F32 weights and a byte-level vocabulary, written as GGUF.
#pragma once
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "support/gguf_writer.h"

namespace octavo::testing {

struct TinyModel {
  std::string arch = "llama";  // any row of the table
  std::uint32_t layers = 2, width = 64, heads = 4, kv_heads = 2, head_dim = 16, ffn_width = 96, context = 512;
  std::uint32_t window = 0;
  bool qkv_bias = false, qk_norm = false, post_norms = false, tied = true;
  bool bf16 = false;  // matrices; else F32
  std::uint64_t seed = 1;
};

/// The printable stand-in of a byte in a byte-level vocabulary, as UTF-8.
inline std::string byte_symbol(std::uint32_t byte) {
  const auto printable = [](std::uint32_t b) {
    return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
  };
  std::uint32_t code = byte;
  if (!printable(byte)) {
    code = 256;
    for (std::uint32_t b = 0; b < byte; ++b) code += printable(b) ? 0 : 1;
  }
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

/// 256 bytes, then "<s>" (id 256) and "</s>" (257).
inline void add_byte_vocabulary(GgufWriter& writer) {
  std::vector<std::string> tokens;
  for (std::uint32_t byte = 0; byte < 256; ++byte) tokens.push_back(byte_symbol(byte));
  tokens.insert(tokens.end(), {"<s>", "</s>"});
  std::vector<std::int32_t> kinds(256, 1);
  kinds.insert(kinds.end(), 2, 3);  // control
  writer.set("tokenizer.ggml.model", "gpt2")
      .set("tokenizer.ggml.pre", "gpt-2")
      .set("tokenizer.ggml.tokens", tokens)
      .set("tokenizer.ggml.token_type", kinds)
      .set("tokenizer.ggml.merges", std::vector<std::string>{})
      .set("tokenizer.ggml.bos_token_id", std::uint32_t{256})
      .set("tokenizer.ggml.eos_token_id", std::uint32_t{257});
}
inline constexpr std::uint32_t kTinyVocab = 258;

/// Metadata, vocabulary and weights of `model`.
inline GgufWriter write_tiny_model(const TinyModel& model) {
  GgufWriter writer;
  const std::string prefix = model.arch + ".";
  writer.set("general.architecture", model.arch)
      .set("general.name", "tiny " + model.arch)
      .set(prefix + "block_count", model.layers)
      .set(prefix + "context_length", model.context)
      .set(prefix + "embedding_length", model.width)
      .set(prefix + "feed_forward_length", model.ffn_width)
      .set(prefix + "attention.head_count", model.heads)
      .set(prefix + "attention.head_count_kv", model.kv_heads)
      .set(prefix + "attention.key_length", model.head_dim)
      .set(prefix + "attention.value_length", model.head_dim)
      .set(prefix + "attention.layer_norm_rms_epsilon", 1e-5F)
      .set(prefix + "rope.freq_base", 10000.0F);
  if (model.window != 0) writer.set(prefix + "attention.sliding_window", model.window);
  add_byte_vocabulary(writer);

  std::mt19937_64 random(model.seed);
  const auto values = [&](std::uint64_t count, float center, float spread) {
    std::vector<float> out(count);
    for (float& x : out) x = center + spread * (static_cast<float>(random() >> 40) / 8388608.0F - 1.0F);
    return out;
  };
  const auto matrix = [&](const std::string& name, std::uint64_t rows, std::uint64_t cols) {
    const std::vector<float> weights = values(rows * cols, 0, 0.15F);
    if (!model.bf16) {
      writer.add_f32(name + ".weight", {cols, rows}, weights);
      return;
    }
    std::string halves;
    for (const float& w : weights) halves.append(reinterpret_cast<const char*>(&w) + 2, 2);  // cut, not rounded
    writer.add_tensor(name + ".weight", static_cast<std::uint32_t>(TensorType::kBF16), {cols, rows}, halves);
  };
  const auto gain = [&](const std::string& name, std::uint64_t n) {
    writer.add_f32(name + ".weight", {n}, values(n, 1, 0.2F));
  };
  const std::uint64_t q_rows = std::uint64_t{model.heads} * model.head_dim;
  const std::uint64_t kv_rows = std::uint64_t{model.kv_heads} * model.head_dim;

  matrix("token_embd", kTinyVocab, model.width);
  gain("output_norm", model.width);
  if (!model.tied) matrix("output", kTinyVocab, model.width);
  for (std::uint32_t i = 0; i < model.layers; ++i) {
    const std::string layer = "blk." + std::to_string(i) + ".";
    gain(layer + "attn_norm", model.width);
    matrix(layer + "attn_q", q_rows, model.width);
    matrix(layer + "attn_k", kv_rows, model.width);
    matrix(layer + "attn_v", kv_rows, model.width);
    if (model.qkv_bias) {
      writer.add_f32(layer + "attn_q.bias", {q_rows}, values(q_rows, 0, 0.1F));
      writer.add_f32(layer + "attn_k.bias", {kv_rows}, values(kv_rows, 0, 0.1F));
      writer.add_f32(layer + "attn_v.bias", {kv_rows}, values(kv_rows, 0, 0.1F));
    }
    if (model.qk_norm) {
      gain(layer + "attn_q_norm", model.head_dim);
      gain(layer + "attn_k_norm", model.head_dim);
    }
    matrix(layer + "attn_output", model.width, q_rows);
    if (model.post_norms) gain(layer + "post_attention_norm", model.width);
    gain(layer + "ffn_norm", model.width);
    matrix(layer + "ffn_gate", model.ffn_width, model.width);
    matrix(layer + "ffn_up", model.ffn_width, model.width);
    matrix(layer + "ffn_down", model.width, model.ffn_width);
    if (model.post_norms) gain(layer + "post_ffw_norm", model.width);
  }
  return writer;
}

/// Of each row of the table, with what it needs.
inline std::vector<TinyModel> one_tiny_model_per_arch() {
  return {{.arch = "llama", .tied = false},
          {.arch = "qwen2", .qkv_bias = true},
          {.arch = "qwen3", .qk_norm = true},
          {.arch = "gemma2", .window = 32, .post_norms = true},
          {.arch = "gemma3", .layers = 7, .kv_heads = 1, .window = 32, .qk_norm = true, .post_norms = true}};
}

}  // namespace octavo::testing
