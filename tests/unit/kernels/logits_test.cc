#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/float_mode.h"
#include "unit/kernels/kernel_case.h"

namespace octavo {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::uint32_t kLengths[] = {1, 2, 15, 16, 17, 63, 64, 65, 1000, 49152, 262144 + 5};

class Logits : public testing::Test {
 protected:
  FloatMode mode_;
  Random random_;
  testing::ScopedTrace trace_{__FILE__, __LINE__, random_.trace()};
};

/// By sorting everything: descending, then lowest id; NaN left out.
std::vector<Candidate> sorted(const std::vector<float>& logits) {
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!std::isnan(logits[i])) all.push_back({{static_cast<std::int32_t>(i)}, logits[i]});
  }
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
  return all;
}

TEST_F(Logits, SumsHaveTheBitsOfRefAndTheValueOfTheFormula) {
  for (const std::uint32_t n : kLengths) {
    const auto logits = random_.row(n, 5.0F);
    long double sum = 0;
    for (const float x : logits) sum += std::exp(static_cast<long double>(x));
    std::vector<float> want, got(n);
    float want_sum = 0, want_log = 0;
    for (const Kernels* kernels : tables_under_test()) {
      const float log_sum = kernels->log_sum_exp(logits.data(), n);
      const float exp_sum = kernels->exp_sum(logits.data(), 1.0F, 3.25F, n, got.data());
      EXPECT_EQ(kernels->exp_sum(logits.data(), 1.0F, 3.25F, n, nullptr), exp_sum) << kernels->name;
      EXPECT_NEAR(log_sum, std::log(sum), 1e-5 * std::max(1.0L, std::abs(std::log(sum))));
      EXPECT_NEAR(exp_sum, sum * std::exp(-3.25L), 2e-4L * sum * std::exp(-3.25L));
      if (want.empty()) {
        want = got;
        want_sum = exp_sum;
        want_log = log_sum;
      }
      EXPECT_TRUE(same_bits(want, got)) << kernels->name;
      EXPECT_TRUE(same_bits(&want_sum, &exp_sum, 1)) << kernels->name;
      EXPECT_TRUE(same_bits(&want_log, &log_sum, 1)) << kernels->name;
    }
  }
}

TEST_F(Logits, ANumberThatIsNotFiniteShowsInTheLogSum) {
  for (const Kernels* kernels : tables_under_test()) {
    for (const float bad : {kNan, kInf}) {
      std::vector<float> logits = random_.row(100);
      logits[random_.below(100)] = bad;
      EXPECT_FALSE(std::isfinite(kernels->log_sum_exp(logits.data(), 100))) << kernels->name;
    }
    std::vector<float> masked(100, -kInf);
    masked[70] = 2.5F;
    EXPECT_EQ(kernels->log_sum_exp(masked.data(), 100), 2.5F) << kernels->name;
  }
}

TEST_F(Logits, LargestIsTheLowestIdOfEqualsAndTellsOfEveryChunk) {
  for (const Kernels* kernels : tables_under_test()) {
    for (const std::uint32_t n : kLengths) {
      std::vector<float> logits = random_.row(n);
      for (float& x : logits) x = std::round(x * 2);  // many ties
      std::vector<float> chunks((n + kLogitChunk - 1) / kLogitChunk + 1, -7);
      const Candidate best = kernels->largest(logits.data(), n, chunks.data());
      EXPECT_EQ(best.id, sorted(logits)[0].id) << kernels->name << ", n = " << n;
      EXPECT_EQ(best.logit, sorted(logits)[0].logit);
      for (std::uint32_t c = 0; c + 1 < chunks.size(); ++c) {
        const auto end = logits.begin() + std::min(n, (c + 1) * kLogitChunk);
        EXPECT_EQ(chunks[c], *std::max_element(logits.begin() + c * kLogitChunk, end)) << kernels->name;
      }
      EXPECT_EQ(chunks.back(), -7);
      for (const float bad : {kNan, kInf}) {
        std::vector<float> broken = logits;
        broken[random_.below(n)] = bad;
        EXPECT_TRUE(std::isnan(kernels->largest(broken.data(), n, chunks.data()).logit)) << kernels->name;
      }
    }
    float chunk = 0;
    const std::vector<float> zeros = {-1.0F, -0.0F, 0.0F}, nothing(40, -kInf);
    EXPECT_EQ(kernels->largest(zeros.data(), 3, &chunk).id.value, 1) << kernels->name;
    EXPECT_EQ(kernels->largest(nothing.data(), 40, &chunk).id.value, 0) << kernels->name;
    EXPECT_EQ(kernels->largest(nothing.data(), 40, &chunk).logit, -kInf) << kernels->name;
  }
}

TEST_F(Logits, NotBelowKeepsIdsInOrder) {
  for (const std::uint32_t n : kLengths) {
    std::vector<float> logits = random_.row(n);
    for (float& x : logits) x = random_.below(50) == 0 ? -kInf : std::round(x * 4) / 4;
    for (const float least : {-kInf, -1.0F, 0.75F, 100.0F}) {
      const std::uint32_t begin = random_.below(n), end = begin + random_.below(n - begin + 1);
      std::vector<std::int32_t> want;
      for (std::uint32_t i = begin; i < end; ++i) {
        if (logits[i] >= least) want.push_back(static_cast<std::int32_t>(i));
      }
      for (const Kernels* kernels : tables_under_test()) {
        std::vector<Candidate> got(want.size() + 1, Candidate{{-7}, 0});
        ASSERT_EQ(kernels->not_below(logits.data(), begin, end, least, got.data()), want.size()) << kernels->name;
        EXPECT_EQ(got.back().id.value, -7);
        for (std::size_t i = 0; i < want.size(); ++i) {
          ASSERT_EQ(got[i].id.value, want[i]) << kernels->name;
          ASSERT_EQ(got[i].logit, logits[static_cast<std::size_t>(want[i])]);
        }
      }
    }
  }
}

TEST_F(Logits, TopIsThePrefixOfTheSortedRow) {
  for (const std::uint32_t n : kLengths) {
    for (const bool ties : {false, true}) {
      std::vector<float> logits = random_.row(n, 3.0F);
      if (ties) {
        for (float& x : logits) x = std::round(x);
      }
      if (n > 4) logits[random_.below(n)] = kNan;
      const auto want = sorted(logits);
      for (const std::uint32_t k : {0U, 1U, 2U, 40U, 1000U, 5000U}) {
        for (const Kernels* kernels : tables_under_test()) {
          std::vector<Candidate> got(k + 1, Candidate{{-7}, 0});
          const std::uint32_t taken = kernels->top(logits.data(), n, k, got.data());
          ASSERT_EQ(taken, std::min<std::size_t>(k, want.size())) << kernels->name;
          EXPECT_EQ(got[k].id.value, -7);
          for (std::uint32_t i = 0; i < taken; ++i) {
            ASSERT_EQ(got[i].id, want[i].id) << kernels->name << ", n = " << n << ", k = " << k << ", rank " << i;
            ASSERT_EQ(got[i].logit, want[i].logit);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace octavo
