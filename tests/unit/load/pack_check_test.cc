// What is checked after the start: every byte of the pack, and every byte of the model.
#include "load/pack_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <mutex>

#include "load/pack_format.h"
#include "load/sha256.h"
#include "load/source_key.h"
#include "support/gguf_writer.h"
#include "support/pack_folder.h"

namespace octavo {
namespace {

using testing::flip_bit;
using ::testing::HasSubstr;
using testing::PackFolder;
using testing::TempFile;

constexpr std::uint64_t kBytes = 3 * kPackChunkBytes;

TEST(SourceSha256, IsThatOfTheFileAsEveryoneTellsIt) {
  const TempFile abc("abc");
  const auto map = FileMap::open(abc.path());
  const std::vector<const FileMap*> files = {&*map};
  const std::string sha = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  EXPECT_EQ(source_sha256(files), sha);
  EXPECT_EQ(join_sha256({sha}), sha);
  EXPECT_NE(join_sha256({sha, sha}), sha);
}

class PackCheckTest : public ::testing::Test {
 protected:
  PackCheckTest() {
    for (const TempFile* file : {&first_, &second_}) {
      auto map = FileMap::open(file->path());
      EXPECT_TRUE(map);
      maps_.push_back(std::make_unique<FileMap>(std::move(*map)));
      sources_.push_back(maps_.back().get());
    }
    const PackId id{"/m/model", std::string(64, 'a'), "layout", kBytes};
    const PackCache cache(folder_.path(), std::uint64_t{1} << 40);
    auto claim = cache.claim(id, {});
    EXPECT_TRUE(claim && claim->writer);
    std::memset(claim->writer->room(kBytes), 7, kBytes);
    EXPECT_TRUE(claim->writer->put());
    EXPECT_TRUE(claim->writer->finish(source_sha256(sources_)));
    auto pack = cache.find(id);
    EXPECT_TRUE(pack) << pack.error().message;
    pack_ = std::make_shared<const PackFile>(std::move(*pack));
  }

  PackCheck::Verdict run() {
    PackCheck check(pack_, sources_, true);
    std::uint64_t done = 0;
    const auto verdict = check.run([&](std::uint64_t so_far) {
      EXPECT_GT(so_far, done);
      done = so_far;
      return true;
    });
    fault_ = check.fault();
    if (verdict == PackCheck::Verdict::kSound) {
      EXPECT_EQ(done, check.total_bytes());
    }
    return verdict;
  }
  bool pack_is_there() const { return std::filesystem::exists(pack_->path()); }

  PackFolder folder_;
  TempFile first_{std::string(3'000'000, 'x')}, second_{"of two files"};
  std::vector<std::unique_ptr<FileMap>> maps_;
  std::vector<const FileMap*> sources_;
  std::shared_ptr<const PackFile> pack_;
  std::string fault_;
};

TEST_F(PackCheckTest, FindsNothingWrongWithWhatIsSound) {
  EXPECT_EQ(run(), PackCheck::Verdict::kSound);
  EXPECT_TRUE(pack_is_there());
}

TEST_F(PackCheckTest, FindsADamagedPack) {
  flip_bit(pack_->path(), packed_offset_of(kBytes) + 2 * kPackChunkBytes + 5, 3);
  EXPECT_EQ(run(), PackCheck::Verdict::kFault);
  EXPECT_THAT(fault_, HasSubstr(pack_->path()));
  EXPECT_THAT(fault_, HasSubstr("2097152"));
  EXPECT_FALSE(pack_is_there()) << "the next start packs again";
}

TEST_F(PackCheckTest, FindsAModelThatIsNotWhatWasPacked) {
  for (const TempFile* file : {&first_, &second_}) {
    flip_bit(file->path(), 4);
    EXPECT_EQ(run(), PackCheck::Verdict::kFault);
    EXPECT_THAT(fault_, HasSubstr("the model is not what"));
    flip_bit(file->path(), 4);
  }
  EXPECT_FALSE(pack_is_there());
}

TEST_F(PackCheckTest, AModelThatWasReplacedUnderItsNameIsNoFault) {
  std::ofstream(first_.path() + ".new") << "another model";
  std::filesystem::rename(first_.path() + ".new", first_.path());
  EXPECT_EQ(run(), PackCheck::Verdict::kSound) << "what was packed is still open";
}

TEST_F(PackCheckTest, AModelThatIsBeingOverwrittenProvesNothing) {
  std::ofstream(second_.path()) << "in place";
  EXPECT_EQ(run(), PackCheck::Verdict::kUnknown);
  EXPECT_TRUE(pack_is_there());
}

TEST_F(PackCheckTest, StopsWhenToldTo) {
  PackCheck check(pack_, sources_, false);
  int asked = 0;
  EXPECT_EQ(check.run([&](std::uint64_t) { return ++asked < 4; }), PackCheck::Verdict::kStopped);
  EXPECT_EQ(asked, 4);
}

TEST_F(PackCheckTest, LeavesAPackAloneThatHasTakenThePlaceOfADamagedOne) {
  flip_bit(pack_->path(), packed_offset_of(kBytes));
  std::filesystem::copy_file(pack_->path(), pack_->path() + ".new");
  std::filesystem::rename(pack_->path() + ".new", pack_->path());
  EXPECT_EQ(run(), PackCheck::Verdict::kFault);
  EXPECT_TRUE(pack_is_there());
}

TEST_F(PackCheckTest, TellsOfAFaultFromTheBackground) {
  flip_bit(first_.path(), 1'000'000);
  std::mutex mutex;
  std::condition_variable told;
  std::string fault;
  const BackgroundPackCheck check(std::make_unique<PackCheck>(pack_, sources_, true), [&](const std::string& what) {
    const std::lock_guard lock(mutex);
    fault = what;
    told.notify_all();
  });
  std::unique_lock lock(mutex);
  EXPECT_TRUE(told.wait_for(lock, std::chrono::seconds(60), [&] { return !fault.empty(); }));
  EXPECT_THAT(fault, HasSubstr("the model is not what"));
}

TEST_F(PackCheckTest, EndsWithItsOwner) {
  for (int i = 0; i < 20; ++i) {
    const BackgroundPackCheck check(std::make_unique<PackCheck>(pack_, sources_, true),
                                    [](const std::string& fault) { ADD_FAILURE() << fault; });
  }
}

}  // namespace
}  // namespace octavo
