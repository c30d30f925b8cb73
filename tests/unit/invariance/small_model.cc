#include "invariance/small_model.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "support/gguf_writer.h"
#include "tensor/dequantize.h"
#include "tensor/tensor_type.h"

namespace octavo::testing {
namespace {

constexpr std::uint32_t kLayers = 6, kWidth = 256, kHeads = 4, kKvHeads = 2, kHeadDim = 64, kFfn = 512, kVocab = 320;
constexpr std::uint32_t kWindow = 48;  // five of six layers; small, so that short prompts pass it

/// Where a block keeps its f16 scales, and the scale that makes random quants behave like weights of a trained model.
struct ScaleField {
  std::size_t offset;
  float value;
};
std::vector<ScaleField> scale_fields(TensorType type) {
  switch (type) {
    case TensorType::kQ4_0: return {{0, 0.013F}};
    case TensorType::kQ4_1: return {{0, 0.013F}, {2, -0.0975F}};
    case TensorType::kQ5_0: return {{0, 0.0065F}};
    case TensorType::kQ5_1: return {{0, 0.0065F}, {2, -0.1F}};
    case TensorType::kQ8_0: return {{0, 0.0008F}};
    case TensorType::kQ2_K: return {{80, 0.007F}, {82, 0.01F}};
    case TensorType::kQ3_K: return {{108, 0.0011F}};
    case TensorType::kQ4_K: return {{0, 0.0004F}, {2, 0.003F}};
    case TensorType::kQ5_K: return {{0, 0.0002F}, {2, 0.003F}};
    case TensorType::kQ6_K: return {{208, 0.000045F}};
    case TensorType::kIQ4_NL: return {{0, 0.0008F}};
    case TensorType::kIQ4_XS: return {{0, 0.000045F}};
    default: return {};
  }
}

class Generator {
 public:
  std::string matrix(TensorType type, std::uint64_t elements) {
    const TypeTraits& traits = traits_of(type);
    const std::uint64_t blocks = elements / traits.block_size;
    std::string data(blocks * traits.block_bytes, '\0');
    if (traits.block_size == 1) {
      fill_floats(type, data);
      return data;
    }
    for (char& byte : data) byte = static_cast<char>(random_());
    for (std::uint64_t block = 0; block < blocks; ++block) {
      for (const ScaleField& field : scale_fields(type)) {
        const float jitter = 0.75F + 0.5F * unit();
        const std::uint16_t half = f32_to_f16(field.value * jitter);
        std::memcpy(data.data() + block * traits.block_bytes + field.offset, &half, sizeof half);
      }
      if (type == TensorType::kMXFP4) data[block * traits.block_bytes] = static_cast<char>(120 + random_() % 3);
    }
    return data;
  }
  std::vector<float> gains(std::uint64_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = 0.75F + 0.5F * unit();
    return values;
  }

 private:
  float unit() { return static_cast<float>(random_() >> 8 & 0xFFFFFF) / 16777216.0F; }

  void fill_floats(TensorType type, std::string& data) {
    const std::size_t bytes = traits_of(type).block_bytes;
    for (std::size_t i = 0; i < data.size(); i += bytes) {
      const float value = 0.2F * (unit() - 0.5F);
      const std::uint16_t half = type == TensorType::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
      std::memcpy(data.data() + i, bytes == 4 ? static_cast<const void*>(&value) : &half, bytes);
    }
  }
  std::mt19937 random_{20240229};
};

std::string write_model() {
  // Seven matrices a layer walk through the formats, so that each format serves several roles.
  constexpr std::array kTypes = {TensorType::kQ4_1, TensorType::kQ8_0,   TensorType::kQ5_0,   TensorType::kQ4_K,
                                 TensorType::kQ6_K, TensorType::kQ4_0,   TensorType::kBF16,   TensorType::kQ5_1,
                                 TensorType::kQ5_K, TensorType::kF16,    TensorType::kQ2_K,   TensorType::kF32,
                                 TensorType::kQ3_K, TensorType::kIQ4_NL, TensorType::kIQ4_XS, TensorType::kMXFP4};
  Generator generate;
  GgufWriter writer;
  writer.set("general.architecture", "gemma3")
      .set("general.name", "small mixed test model")
      .set("gemma3.block_count", kLayers)
      .set("gemma3.context_length", std::uint32_t{2048})
      .set("gemma3.embedding_length", kWidth)
      .set("gemma3.feed_forward_length", kFfn)
      .set("gemma3.attention.head_count", kHeads)
      .set("gemma3.attention.head_count_kv", kKvHeads)
      .set("gemma3.attention.key_length", kHeadDim)
      .set("gemma3.attention.value_length", kHeadDim)
      .set("gemma3.attention.sliding_window", kWindow)
      .set("gemma3.attention.layer_norm_rms_epsilon", 1e-6F);
  std::size_t next_type = 0;
  const auto matrix = [&](const std::string& name, std::uint64_t rows, std::uint64_t cols) {
    const TensorType type = kTypes[next_type++ % kTypes.size()];
    writer.add_tensor(name, static_cast<std::uint32_t>(type), {cols, rows}, generate.matrix(type, rows * cols));
  };
  const auto gains = [&](const std::string& name, std::uint64_t count) {
    writer.add_f32(name, {count}, generate.gains(count));
  };
  writer.add_tensor("token_embd.weight", static_cast<std::uint32_t>(TensorType::kQ8_0), {kWidth, kVocab},
                    generate.matrix(TensorType::kQ8_0, std::uint64_t{kVocab} * kWidth));
  gains("output_norm.weight", kWidth);
  for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    gains(block + "attn_norm.weight", kWidth);
    matrix(block + "attn_q.weight", kHeads * kHeadDim, kWidth);
    matrix(block + "attn_k.weight", kKvHeads * kHeadDim, kWidth);
    matrix(block + "attn_v.weight", kKvHeads * kHeadDim, kWidth);
    gains(block + "attn_q_norm.weight", kHeadDim);
    gains(block + "attn_k_norm.weight", kHeadDim);
    matrix(block + "attn_output.weight", kWidth, kHeads * kHeadDim);
    gains(block + "post_attention_norm.weight", kWidth);
    gains(block + "ffn_norm.weight", kWidth);
    matrix(block + "ffn_gate.weight", kFfn, kWidth);
    matrix(block + "ffn_up.weight", kFfn, kWidth);
    matrix(block + "ffn_down.weight", kWidth, kFfn);
    gains(block + "post_ffw_norm.weight", kWidth);
  }
  return writer.bytes();
}

}  // namespace

std::string small_model() {
  static const TempFile file(write_model(), "small-model.gguf");
  return file.path();
}

}  // namespace octavo::testing
