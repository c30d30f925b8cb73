#include "kernels/select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu_features.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;

CpuFeatures everything() {
  CpuFeatures cpu;
  cpu.fma = cpu.f16c = cpu.avx2 = cpu.avxvnni = cpu.os_ymm = cpu.os_zmm = true;
  cpu.avx512f = cpu.avx512bw = cpu.avx512dq = cpu.avx512vl = cpu.avx512vnni = cpu.avx512bf16 = true;
  return cpu;
}

TEST(CpuFeatures, ACompleteCpuMissesNothing) {
  EXPECT_EQ(missing_for_ref(everything()), "");
  EXPECT_EQ(missing_for_avx2(everything()), "");
  EXPECT_EQ(missing_for_avxvnni(everything()), "");
  EXPECT_EQ(missing_for_avx512(everything()), "");
  EXPECT_EQ(missing_for_avx512bf16(everything()), "");
}

TEST(CpuFeatures, WhatIsMissingIsNamed) {
  CpuFeatures cpu = everything();
  cpu.avx512vnni = cpu.avx512dq = false;
  EXPECT_EQ(missing_for_avx512(cpu), "this CPU has no AVX512DQ, AVX512_VNNI");
  EXPECT_EQ(missing_for_avx2(cpu), "");
  cpu = everything();
  cpu.os_zmm = false;
  EXPECT_EQ(missing_for_avx512(cpu), "the operating system does not save ZMM registers");
  cpu.os_ymm = false;
  EXPECT_EQ(missing_for_avx2(cpu), "the operating system does not save YMM registers");
  EXPECT_EQ(missing_for_avx512(cpu), missing_for_avx2(cpu));
  EXPECT_EQ(missing_for_avxvnni(cpu), missing_for_avx2(cpu));
  cpu = everything();
  cpu.avxvnni = false;  // a server CPU before Sapphire Rapids, any Zen 4
  EXPECT_EQ(missing_for_avxvnni(cpu), "this CPU has no AVX_VNNI");
  EXPECT_EQ(missing_for_avx512(cpu), "");
  cpu = everything();
  cpu.avx512bf16 = false;
  EXPECT_EQ(missing_for_avx512bf16(cpu), "this CPU has no AVX512_BF16");
  EXPECT_EQ(missing_for_avx512(cpu), "");
  EXPECT_EQ(missing_for_ref({}), "this CPU has no FMA");
}

TEST(SelectKernels, TheBestIsTheLastThatRuns) {
  const auto choice = select_kernels("");
  ASSERT_TRUE(choice) << choice.error().message;
  const auto runnable = runnable_kernels();
  EXPECT_STREQ(runnable.front()->name, "ref");
  EXPECT_EQ(choice->kernels, runnable.back());
}

TEST(SelectKernels, AWishIsGrantedByName) {
  for (const Kernels* kernels : runnable_kernels()) {
    const auto choice = select_kernels(kernels->name);
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->kernels, kernels);
  }
}

TEST(SelectKernels, AnImpossibleWishIsRefusedWithWhatIsPossible) {
  const auto choice = select_kernels("altivec");
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(choice.error().message, HasSubstr("'altivec'"));
  EXPECT_THAT(choice.error().message, HasSubstr("possible here: ref"));
  EXPECT_EQ(choice.error().field, "OCTAVO_ISA");
}

}  // namespace
}  // namespace octavo
