// What a start measured of its steps comes back at the next one, or not at all.
#include "engine/step_memo.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "support/pack_folder.h"

namespace octavo {
namespace {

StepMeasurement measured() {
  StepMeasurement m;
  m.costs = {1.5e6, 123456.789, 0, 17.25, 1e-3};
  m.copy_per_block = Nanos(4321);
  m.complete = true;
  return m;
}

class StepMemo : public ::testing::Test {
 protected:
  std::string write(const std::string& text) const {
    std::ofstream(path_) << text;
    return path_;
  }
  testing::PackFolder folder_;
  std::string path_ = folder_.path() + "/model-0123.steps";
};

TEST_F(StepMemo, ComesBackToTheBit) {
  remember_steps(path_, measured());
  const auto back = recall_steps(path_);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->costs.step, measured().costs.step);
  EXPECT_EQ(back->costs.token, measured().costs.token);
  EXPECT_EQ(back->costs.logit_row, measured().costs.logit_row);
  EXPECT_EQ(back->costs.chunk_key, measured().costs.chunk_key);
  EXPECT_EQ(back->costs.single_key, measured().costs.single_key);
  EXPECT_EQ(back->copy_per_block, measured().copy_per_block);
  EXPECT_TRUE(back->complete);
  EXPECT_EQ(folder_.files().size(), 1U);
}

TEST_F(StepMemo, IsNotTakenFromWhatItCannotBe) {
  EXPECT_FALSE(recall_steps(path_));
  EXPECT_FALSE(recall_steps(""));
  const std::string title = "octavo step costs 1\n";
  EXPECT_TRUE(recall_steps(write(title + "1 2 3 4 5 6\n")));
  for (const char* text : {"", "octavo step costs 2\n1 2 3 4 5 6\n"}) EXPECT_FALSE(recall_steps(write(text))) << text;
  for (const char* numbers : {"", "1 2 3 4 5", "1 2 3 4 5 x", "1 2 -3 4 5 6", "1 2 nan 4 5 6", "1 2 1e300 4 5 6"}) {
    EXPECT_FALSE(recall_steps(write(title + numbers))) << numbers;
  }
}

TEST_F(StepMemo, IsOfThisProgramOnly) {
  remember_steps(path_, measured());
  std::filesystem::last_write_time(path_, std::filesystem::file_time_type::clock::now() - std::chrono::hours(100'000));
  EXPECT_FALSE(recall_steps(path_));
}

TEST_F(StepMemo, LiesBesideItsPackByMachineAndKvForm) {
  EngineReport report;
  EXPECT_EQ(step_memo_path(report), "");
  remember_steps("", measured());
  report.weights.pack = "/packs/m-0123.pack";
  report.isa = "avx2";
  const std::string path = step_memo_path(report);
  EXPECT_TRUE(path.starts_with("/packs/m-0123-") && path.ends_with(".steps")) << path;
  report.threads = 7;
  EXPECT_NE(step_memo_path(report), path);
}

}  // namespace
}  // namespace octavo
