// Step costs: curves read, fitted to steps whose costs are known, composed from kernels, kept in a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "capacity/step_price.h"
#include "octavo/profile.h"
#include "octavo/simulate.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;

const std::vector<std::uint32_t> kWindows(12, 0);  // all full

StepCurve known_curve() {
  StepCurve c;
  c.tokens = {1, 16, 256}, c.ns = {5e6, 2e7, 2e8};
  c.logit_rows = {1, 8}, c.logit_ns = {1e6, 3e6};
  c.single_key_ns = 900, c.chunk_key_ns = 300;
  c.row_ns = 2e3, c.step_ns = 2e4;
  return c;
}

TimedStep timed(const StepPrice& price, std::vector<TimedStep::Row> rows) {
  StepWork work;
  for (const TimedStep::Row& r : rows) work += price.counter().row(r.first_position, r.tokens, r.logits);
  const double run = price.of(work).run();
  const double overhead = price.curve().step_ns + price.curve().row_ns * static_cast<double>(rows.size());
  return {std::move(rows), run, run + overhead};
}

TEST(StepCurveTest, IsReadOnStraightLines) {
  const std::vector<std::uint32_t> at = {1, 3, 7};
  const std::vector<double> ns = {10, 30, 50};
  EXPECT_EQ(on_curve(at, ns, 0), 0);
  EXPECT_EQ(on_curve(at, ns, 1), 10);
  EXPECT_EQ(on_curve(at, ns, 2), 20);
  EXPECT_EQ(on_curve(at, ns, 5), 40);
  EXPECT_EQ(on_curve(at, ns, 9), 60);
  EXPECT_EQ(on_curve({}, {}, 5), 0);
}

TEST(StepCurveTest, FitsWhatStepsOfKnownCostsTook) {
  const StepPrice price(known_curve(), window_shares(kWindows), 0);
  std::vector<TimedStep> steps;
  for (int round = 0; round < 4; ++round) {
    for (const std::uint32_t tokens : {1U, 16U, 256U}) steps.push_back(timed(price, {{0, tokens, 1}}));
    for (const std::uint32_t depth : {256U, 512U, 768U}) steps.push_back(timed(price, {{depth, 256, 0}}));
    for (std::uint32_t i = 0; i < 8; ++i) {
      steps.push_back(timed(price, {{2048 + i, 1, 1}}));
      steps.push_back(timed(price, std::vector<TimedStep::Row>(8, {16 + i, 1, 1})));
    }
  }
  const auto fitted = fit_step_curve(kWindows, 1.0 / 6, steps);
  ASSERT_TRUE(fitted) << fitted.error().message;
  EXPECT_NEAR(fitted->single_key_ns, 900, 9);
  EXPECT_NEAR(fitted->chunk_key_ns, 300, 6);  // chunks at depth were without logits
  EXPECT_NEAR(fitted->step_ns, 2e4, 200);
  EXPECT_NEAR(fitted->row_ns, 2e3, 20);
  // Other steps than those that were timed.
  const StepPrice refound(*fitted, window_shares(kWindows), 0);
  for (const auto& rows : {std::vector<TimedStep::Row>(8, {900, 1, 1}), {{0, 100, 1}}, {{1000, 1, 1}, {512, 64, 0}}}) {
    StepWork work;
    for (const auto& r : rows) work += price.counter().row(r.first_position, r.tokens, r.logits);
    EXPECT_NEAR(refound.of(work).run() / price.of(work).run(), 1, 0.02);
  }
}

TEST(StepCurveTest, NothingIsFittedToNothing) {
  const auto fitted = fit_step_curve(kWindows, 0.2, {});
  ASSERT_FALSE(fitted);
  EXPECT_THAT(fitted.error().message, HasSubstr("no step of a single row"));
}

MachineProfile small_profile() {
  MachineProfile p;
  p.cpu = "a CPU", p.isa = "avx2", p.threads = 2, p.measured = "2026-12-01 00:00 UTC";
  p.joined_region_us = 0.5, p.sample_ns = 1e4;
  p.gemm = {{"Q4_0", {1, 64}, {0.03, 0.5}}};
  p.attention = {{"bf16", 64, 4, 20, 5}, {"bf16", 128, 1, 40, 12}};
  p.models = {{"a model", 1000, "int8", "bf16", known_curve()}};
  return p;
}

ModelShape small_model() {
  ModelShape m;
  m.name = "a model", m.weights_bytes = 999;
  m.width = 256, m.ffn_width = 512, m.vocab_size = 1000;
  m.layers.assign(4, {8, 2, 64, 0, 0});
  m.matrices = {{"q", "Q4_0", 512, 256, 4, 0, true}, {"head", "Q4_0", 1000, 256, 1, 0, false}};
  return m;
}

TEST(StepCurveTest, AModelIsComposedFromKernels) {
  const auto costing = step_curve(small_profile(), small_model(), {});
  ASSERT_TRUE(costing) << costing.error().message;
  EXPECT_FALSE(costing->measured);
  const StepCurve& c = costing->curve;
  ASSERT_EQ(c.tokens, (std::vector<std::uint32_t>{1, 64}));
  EXPECT_GT(c.ns[0], 4 * 512 * 256 * 0.03);
  EXPECT_NEAR(c.ns[1] - c.ns[0], 4 * 512 * 256 * (0.5 - 0.03), 1);
  EXPECT_DOUBLE_EQ(c.single_key_ns, 4 * 2 * 20);  // layers x KV heads: query heads are in the group's price
  ModelShape measured = small_model();
  measured.weights_bytes = 1000;
  const auto own = step_curve(small_profile(), measured, {});
  ASSERT_TRUE(own);
  EXPECT_TRUE(own->measured);
  EXPECT_EQ(own->curve.ns, known_curve().ns);
}

TEST(StepCurveTest, WhatWasNotMeasuredIsNamed) {
  ModelShape model = small_model();
  model.matrices[0].format = "Q2_K";
  const auto costing = step_curve(small_profile(), model, {});
  ASSERT_FALSE(costing);
  EXPECT_THAT(costing.error().message, HasSubstr("Q2_K"));
}

class ProfileFileTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  void write(const std::string& text) const { std::ofstream(path_) << text; }
  [[nodiscard]] std::string fault() const {
    const auto loaded = load_profile(path_);
    return loaded ? "" : loaded.error().message;
  }
  std::string path_ = testing::TempDir() + "octavo_profile.json";
};

TEST_F(ProfileFileTest, ComesBackAsItWas) {
  ASSERT_TRUE(save_profile(path_, small_profile()));
  const auto loaded = load_profile(path_);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(profile_hash(*loaded), profile_hash(small_profile()));
  MachineProfile other = *loaded;
  other.models[0].steps.ns[0] += 1;
  EXPECT_NE(profile_hash(other), profile_hash(*loaded));
}

TEST_F(ProfileFileTest, DamageIsNamed) {
  EXPECT_THAT(fault(), HasSubstr("octavo probe --save"));
  write("[1]");
  EXPECT_THAT(fault(), HasSubstr("no JSON object"));
  write("{}");
  EXPECT_THAT(fault(), HasSubstr("octavo_machine_profile"));
  ASSERT_TRUE(save_profile(path_, small_profile()));
  std::ifstream file(path_);
  const std::string whole(std::istreambuf_iterator<char>(file), {});
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    text.replace(text.find(from), from.size(), to);
    write(text);
    return fault();
  };
  EXPECT_THAT(with("\"threads\": 2", "\"threads\": -2"), HasSubstr("threads is not a whole number"));
  EXPECT_THAT(with("\"group\": 4", "\"group\": 0"), HasSubstr("group"));
  EXPECT_THAT(with("\"row_ns\": 2000.0", "\"row_ns\": -1"), HasSubstr("negative"));
  EXPECT_THAT(with("\"step_ns\"", "\"step\""), HasSubstr("models[0].steps.step_ns is missing"));
}

}  // namespace
}  // namespace octavo
