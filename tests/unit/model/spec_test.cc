#include "model/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/arch_table.h"
#include "model/rope.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;

ModelFacts small_facts() {
  ModelFacts facts;
  facts.width = 64;
  facts.vocab_size = 288;
  facts.context_length = 256;
  facts.num_layers = 12;
  facts.num_heads.assign(12, 4);
  facts.num_kv_heads.assign(12, 2);
  facts.ffn_width.assign(12, 128);
  return facts;
}

std::string refusal(const ModelFacts& facts) {
  const auto spec = make_spec(*find_gguf_arch("llama"), facts);
  return spec ? "(accepted)" : spec.error().message;
}

TEST(Spec, FillsInTheDefaultsOfARow) {
  ModelFacts facts = small_facts();
  facts.window = 32;
  facts.head_dim = 256;
  facts.rope.base = 1e6F;
  auto spec = make_spec(*find_gguf_arch("gemma3"), facts);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->attn_scale, 1.0F / 16);
  EXPECT_EQ(spec->embedding_scale, 8.0F);
  ASSERT_EQ(spec->ropes.size(), 2U);
  EXPECT_EQ(spec->ropes[0].base, 1e6F);
  EXPECT_EQ(spec->ropes[1].base, 1e4F);
  EXPECT_EQ(spec->ropes[1].rot_dims, 256U);
  for (std::uint32_t i = 0; i < 12; ++i) {
    const bool global = i == 5 || i == 11;
    EXPECT_EQ(spec->layers[i].window, global ? 0U : 32U) << i;
    EXPECT_EQ(spec->layers[i].rope, global ? 0U : 1U) << i;
  }
  EXPECT_TRUE(spec->norms.qk && spec->norms.post_attn && spec->norms.post_ffn);
  EXPECT_EQ(spec->ffn, FfnKind::kGeGlu);
  EXPECT_EQ(spec->attn_soft_cap, 0.0F);
}

TEST(Spec, CapsAndAlternatesWhereTheRowSaysSo) {
  ModelFacts facts = small_facts();
  facts.head_dim = 128;  // the scale of the 27B size
  auto spec = make_spec(*find_gguf_arch("gemma2"), facts);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->attn_soft_cap, 50.0F);
  EXPECT_EQ(spec->final_soft_cap, 30.0F);
  EXPECT_EQ(spec->attn_scale, 0.25F);  // 1 / sqrt(64 / 4)
  EXPECT_EQ(spec->layers[0].window, 4096U);
  EXPECT_EQ(spec->layers[1].window, 0U);
  EXPECT_EQ(spec->ropes.size(), 1U);
  facts.attn_soft_cap = 0.0F;
  EXPECT_EQ(make_spec(*find_gguf_arch("gemma2"), facts)->attn_soft_cap, 0.0F);
}

TEST(Spec, WindowsEveryLayerOfALlamaThatHasOne) {
  ModelFacts facts = small_facts();
  EXPECT_EQ(make_spec(*find_gguf_arch("llama"), facts)->layers[3].window, 0U);
  facts.window = 8;
  EXPECT_EQ(make_spec(*find_gguf_arch("llama"), facts)->layers[3].window, 8U);
  EXPECT_EQ(make_spec(*find_gguf_arch("qwen2"), facts)->layers[3].window, 0U);
}

TEST(Spec, RefusesSizesOutOfRangeByName) {
  const auto with = [](auto change) {
    ModelFacts facts = small_facts();
    change(facts);
    return refusal(facts);
  };
  EXPECT_EQ(refusal(small_facts()), "(accepted)");
  EXPECT_THAT(with([](auto& f) { f.width = 0; }), HasSubstr("width is 0"));
  EXPECT_THAT(with([](auto& f) { f.width = 1U << 30; }), HasSubstr("width is 1073741824"));
  EXPECT_THAT(with([](auto& f) { f.width = 65; }), HasSubstr("not a multiple of the 4 attention heads"));
  EXPECT_THAT(with([](auto& f) { f.vocab_size = 0; }), HasSubstr("vocabulary size is 0"));
  EXPECT_THAT(with([](auto& f) { f.context_length = UINT32_MAX; }), HasSubstr("context length"));
  EXPECT_THAT(with([](auto& f) { f.num_heads[0] = 0; }), HasSubstr("attention heads is 0"));
  EXPECT_THAT(with([](auto& f) { f.num_kv_heads[2] = 3; }), HasSubstr("not a multiple of the 3 KV heads"));
  EXPECT_THAT(with([](auto& f) { f.num_kv_heads[2] = 5; }), HasSubstr("KV heads is 5"));
  EXPECT_THAT(with([](auto& f) { f.ffn_width[1] = 0; }), HasSubstr("FFN width"));
  EXPECT_THAT(with([](auto& f) { f.head_dim = 20; }), HasSubstr("multiple of 16"));
  EXPECT_THAT(with([](auto& f) { f.norm_eps = NAN; }), HasSubstr("norm epsilon"));
  EXPECT_THAT(with([](auto& f) { f.attn_scale = INFINITY; }), HasSubstr("attention scale"));
  EXPECT_THAT(with([](auto& f) { f.attn_soft_cap = -1.0F; }), HasSubstr("soft-cap"));
  EXPECT_THAT(with([](auto& f) { f.window_period = 0; }), HasSubstr("window pattern"));
  EXPECT_THAT(with([](auto& f) { f.rope.base = -1; }), HasSubstr("rope base"));
  EXPECT_THAT(with([](auto& f) { f.rope.rot_dims = 18; }), HasSubstr("rope dimension is 18"));
  EXPECT_THAT(with([](auto& f) { f.rope.linear_factor = 0; }), HasSubstr("rope scaling factor"));
  EXPECT_THAT(with([](auto& f) { f.rope.factors = {1, 2}; }), HasSubstr("number of rope factors is 2"));
  EXPECT_THAT(with([](auto& f) { f.rope.factors.assign(8, 0.0F); }), HasSubstr("rope factor"));
  EXPECT_THAT(with([](auto& f) { f.rope.llama3 = {8, 4, 4, 32}; }), HasSubstr("llama3"));
}

TEST(Spec, NamesWhatIsSupported) {
  EXPECT_EQ(find_gguf_arch("mamba"), nullptr);
  EXPECT_EQ(find_hf_arch("mistral"), find_gguf_arch("llama"));
  EXPECT_EQ(supported_gguf_archs(), "llama, qwen2, qwen3, gemma2, gemma3");
  EXPECT_EQ(supported_hf_types(), "llama, mistral, qwen2, qwen3, gemma2, gemma3_text");
}

// Values of numpy in float64, with the power rounded to float32 before the division.
TEST(Rope, GivesTheFrequenciesOfTheReference) {
  RopeSpec rope;
  rope.base = 500000;
  rope.rot_dims = 128;
  for (std::uint32_t i = 0; const float freq : inv_freq(rope)) {
    const double exact = std::pow(500000.0, 2.0 * i / 128);
    EXPECT_EQ(freq, 1.0F / static_cast<float>(exact)) << i;
    ++i;
  }
  rope.base = 10000;
  rope.rot_dims = 80;  // 2i / 80 is not exact in f32
  for (std::uint32_t i = 0; const float freq : inv_freq(rope)) {
    const double exact = std::pow(10000.0, static_cast<double>(static_cast<float>(2 * i) / 80.0F));
    EXPECT_EQ(freq, 1.0F / static_cast<float>(exact)) << i;
    ++i;
  }
}

TEST(Rope, ScalesLinearlyAndByFactors) {
  RopeSpec rope;
  rope.rot_dims = 16;
  const std::vector<float> plain = inv_freq(rope);
  EXPECT_EQ(plain[0], 1.0F);
  rope.linear_factor = 8;
  EXPECT_EQ(inv_freq(rope)[3], plain[3] / 8);
  rope.linear_factor = 1;
  rope.factors = {1, 1, 1, 2, 1, 1, 1, 8};
  EXPECT_EQ(inv_freq(rope)[3], plain[3] / 2);
  EXPECT_EQ(inv_freq(rope)[7], plain[7] / 8);
}

TEST(Rope, StretchesLongWavesByTheLlama3Rule) {
  RopeSpec rope;
  rope.base = 10000;
  rope.rot_dims = 16;  // waves of 6.3, 19.9, 62.8…
  const std::vector<float> plain = inv_freq(rope);
  rope.llama3 = {.factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_context = 32};
  const std::vector<float> stretched = inv_freq(rope);
  EXPECT_EQ(stretched[0], plain[0]);                                 // below 32 / 4: kept
  const double smooth = (32 / (2 * M_PI / plain[1]) - 1) / (4 - 1);  // between: blended
  EXPECT_NEAR(stretched[1], (1 - smooth) * plain[1] / 8 + smooth * plain[1], 1e-7);
  for (std::size_t i = 2; i < 8; ++i) EXPECT_EQ(stretched[i], plain[i] / 8);
}

}  // namespace
}  // namespace octavo
