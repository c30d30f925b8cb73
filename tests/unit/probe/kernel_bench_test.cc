#include "octavo/kernel_bench.h"

#include <gtest/gtest.h>

#include "kernels/select.h"
#include "probe/measure.h"

namespace octavo {
namespace {

KernelBenchConfig small() {
  KernelBenchConfig config;
  config.rows = {3};
  config.outputs = 40;
  config.inputs = 256;
  config.head_dims = {80};
  config.groups = {3};
  config.depths = {300};
  config.vocab = 700;
  return config;
}

TEST(KernelBench, EveryTableThatRunsHereIsMeasured) {
  for (const Kernels* kernels : runnable_kernels()) {
    KernelBenchConfig config = small();
    config.isa = kernels->name;
    std::uint64_t told = 0, total = 0;
    const auto report = bench_kernels(config, [&](const std::string&, std::uint64_t done, std::uint64_t of) {
      EXPECT_EQ(done, told++);
      total = of;
    });
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->isa, kernels->name);
    EXPECT_EQ(report->gemm.size() + report->attention.size() + report->sampling.size(), total);
    EXPECT_EQ(told, total);
    for (const GemmRow& row : report->gemm) EXPECT_GT(row.speed.peak_share, 0) << row.format;
    for (const AttentionRow& row : report->attention) EXPECT_GT(row.speed.read_share, 0) << row.queries;
  }
}

TEST(KernelBench, WhatHasNoKernelIsRefusedByNameAndLimit) {
  const auto message = [](auto change) {
    KernelBenchConfig config = small();
    change(config);
    const auto report = bench_kernels(config);
    return report ? std::string("accepted") : report.error().message;
  };
  EXPECT_EQ(message([](auto& c) { c.formats = {"Q9_9"}; }).rfind("--formats: 'Q9_9' has no kernel; Q4_0, ", 0), 0U);
  EXPECT_EQ(message([](auto& c) { c.inputs = 300; }), "--inputs: 300 is not a multiple of 256");
  EXPECT_EQ(message([](auto& c) { c.head_dims = {72}; }), "--head-dims: 72 is not a multiple of 16 up to 256");
  EXPECT_EQ(message([](auto& c) { c.groups = {0}; }), "--groups: 0 is not within 1 to 64");
  EXPECT_NE(message([](auto& c) { c.isa = "avx9"; }).find("avx9"), std::string::npos);
}

TEST(Measure, TheBestAndTheMiddleOfAList) {
  const Spread spread = spread_of({3, 1, 2, 9, 8});
  EXPECT_EQ(spread.min, 1);
  EXPECT_EQ(spread.median, 3);
}

TEST(Measure, AWorkingSetBeyondMemoryIsRefused) {
  const auto rate = probe_read(1ULL << 50U);
  ASSERT_FALSE(rate);
  EXPECT_EQ(rate.error().code, ErrorCode::kExhausted);
}

}  // namespace
}  // namespace octavo
