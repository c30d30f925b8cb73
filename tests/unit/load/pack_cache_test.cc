// The files of the pack cache: whole or not there, never trusted when damaged, one writer at a time, so many bytes.
#include "load/pack_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>

#include "load/pack_format.h"
#include "support/pack_folder.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using testing::flip_bit;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::PackFolder;
using ::testing::SizeIs;

constexpr std::uint64_t kBytes = (5 << 19) + 64;  // two and a half chunks, and a little
constexpr std::uint64_t kFileBytes = packed_offset_of(kBytes) + kBytes;
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 40;

PackId id_of(const std::string& model = "/models/a.gguf") {
  return {model, std::string(64, 'a'), "matrix 1, matrix 2", kBytes};
}

std::vector<std::byte> contents() {
  std::mt19937 random(3);
  std::vector<std::byte> bytes(kBytes);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

/// Fills a pack piece by piece; pieces and chunks have nothing in common.
bool fill(PackWriter& writer, std::uint64_t bytes = kBytes) {
  const auto all = contents();
  for (std::uint64_t at = 0; at < bytes;) {
    const std::uint64_t n = std::min<std::uint64_t>(bytes - at, 300'032);
    std::memcpy(writer.room(n), all.data() + at, n);
    if (!writer.put()) return false;
    at += n;
  }
  return true;
}

Result<> make_pack(const PackCache& cache, const PackId& id) {
  OCTAVO_TRY(const PackCache::Claim claim, cache.claim(id, {}));
  if (!claim.writer) return Error{ErrorCode::kBusy, "it was there", ""};
  (void)fill(*claim.writer);
  return claim.writer->finish(std::string(64, 'b'));
}

class PackCacheTest : public ::testing::Test {
 protected:
  void make() {
    const auto made = make_pack(cache_, id_);
    ASSERT_TRUE(made) << made.error().message;
  }
  std::string refusal() const {
    const auto pack = cache_.find(id_);
    if (pack) return "(found)";
    EXPECT_EQ(pack.error().code, ErrorCode::kCorrupt);
    return pack.error().message;
  }

  PackFolder folder_;
  PackCache cache_{folder_.path(), kNoLimit};
  PackId id_ = id_of();
};

TEST_F(PackCacheTest, KeepsWhatWasPacked) {
  EXPECT_EQ(cache_.find(id_).error().code, ErrorCode::kNotFound);
  make();
  const auto pack = cache_.find(id_);
  ASSERT_TRUE(pack) << pack.error().message;
  const auto packed = pack->packed(), chunk = pack->chunk(2);
  EXPECT_TRUE(std::ranges::equal(packed, contents()));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(packed.data()) % 64, 0U);
  EXPECT_EQ(pack->source_sha256(), std::string(64, 'b'));
  ASSERT_EQ(pack->num_chunks(), 3U);
  EXPECT_EQ(chunk.size(), kBytes - 2 * kPackChunkBytes);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(pack->chunk_is_sound(i));
  EXPECT_THAT(folder_.files(), ::testing::ElementsAre(pack->path()));
  EXPECT_THAT(pack->path(), HasSubstr("/a-"));
}

TEST_F(PackCacheTest, RefusesATruncatedOrGrownPack) {
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{100}, std::uint64_t{256}, std::uint64_t{300},
                                   kFileBytes - kBytes, kFileBytes - 1, kFileBytes + 1}) {
    make();
    fs::resize_file(cache_.path_of(id_), size);
    const auto pack = cache_.find(id_);
    EXPECT_FALSE(pack) << size;
  }
}

TEST_F(PackCacheTest, RefusesEveryFlippedBitOfHeaderAndTable) {
  make();
  const std::string path = cache_.path_of(id_);
  std::mt19937 random(1);
  for (std::uint64_t byte = 0; byte < sizeof(PackHeader) + 3 * sizeof(PackChecksum); ++byte) {
    const auto bit = static_cast<unsigned>(random() % 8);
    flip_bit(path, byte, bit);
    EXPECT_THAT(refusal(), HasSubstr(path)) << byte;
    flip_bit(path, byte, bit);
  }
  EXPECT_TRUE(cache_.find(id_));
}

TEST_F(PackCacheTest, TellsWhichChunkIsDamaged) {
  make();
  flip_bit(cache_.path_of(id_), kFileBytes - 1, 7);
  const auto pack = cache_.find(id_);
  ASSERT_TRUE(pack) << "the packed bytes are not read at the start";
  EXPECT_TRUE(pack->chunk_is_sound(0));
  EXPECT_TRUE(pack->chunk_is_sound(1));
  EXPECT_FALSE(pack->chunk_is_sound(2));
}

TEST_F(PackCacheTest, RefusesAnotherVersionSourceAndLayout) {
  make();
  const std::string path = cache_.path_of(id_);
  PackId other = id_;
  other.source_key[0] = 'c';
  EXPECT_EQ(cache_.path_of(other), path) << "a changed model takes its old pack's place";
  EXPECT_THAT(cache_.find(other).error().message, HasSubstr("the model has changed"));
  other = id_;
  other.layout += ", matrix 3";
  EXPECT_NE(cache_.path_of(other), path) << "two layouts may be kept";
  fs::copy_file(path, cache_.path_of(other));
  EXPECT_THAT(cache_.find(other).error().message, HasSubstr("another layout"));

  PackHeader header;
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  ++header.version;
  header.header_checksum = checksum_of(header);
  file.seekp(0).write(reinterpret_cast<const char*>(&header), sizeof header).flush();
  EXPECT_THAT(refusal(), HasSubstr("another version"));
}

TEST_F(PackCacheTest, ReplacesWhatIsNotInOrder) {
  make();
  flip_bit(cache_.path_of(id_), 20);
  make();
  EXPECT_TRUE(cache_.find(id_));
  EXPECT_EQ(make_pack(cache_, id_).error().code, ErrorCode::kBusy) << "one that is in order stays";
  EXPECT_THAT(folder_.files(), SizeIs(1));
}

TEST_F(PackCacheTest, LeavesNothingOfAnUnfinishedPack) {
  {
    auto claim = cache_.claim(id_, {});
    ASSERT_TRUE(claim) << claim.error().message;
    ASSERT_TRUE(fill(*claim->writer, kBytes / 2));
    EXPECT_THAT(folder_.files(), SizeIs(1));
    EXPECT_FALSE(cache_.find(id_));
  }
  EXPECT_THAT(folder_.files(), IsEmpty());
}

/// No file of this process may grow beyond `bytes`: as on a full disk, writing ends early.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(std::uint64_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

TEST_F(PackCacheTest, AFullDiskIsAnErrorBeforeAnyWork) {
  const FileSizeLimit full(kFileBytes / 2);
  const auto claim = cache_.claim(id_, {});
  ASSERT_FALSE(claim);
  EXPECT_EQ(claim.error().code, ErrorCode::kIo);
  EXPECT_THAT(claim.error().message, HasSubstr("reserve 2 MiB"));
  EXPECT_THAT(folder_.files(), IsEmpty());
}

TEST_F(PackCacheTest, ADiskThatFillsUpMeanwhileIsAnErrorToo) {
  {
    auto claim = cache_.claim(id_, {});
    ASSERT_TRUE(claim) << claim.error().message;
    const FileSizeLimit full(kFileBytes - kBytes / 2);
    EXPECT_FALSE(fill(*claim->writer));
    const auto finished = claim->writer->finish(std::string(64, 'b'));
    ASSERT_FALSE(finished);
    EXPECT_EQ(finished.error().code, ErrorCode::kIo);
    EXPECT_THAT(finished.error().message, HasSubstr("cannot write"));
  }
  EXPECT_THAT(folder_.files(), IsEmpty());
}

TEST_F(PackCacheTest, AFolderThatTakesNothingIsAnError) {
  for (const char* folder : {"/proc/octavo", "/dev/null/octavo", "/proc"}) {
    const auto claim = PackCache(folder, kNoLimit).claim(id_, {});
    ASSERT_FALSE(claim) << folder;
    EXPECT_EQ(claim.error().code, ErrorCode::kIo);
    EXPECT_THAT(claim.error().message, HasSubstr(folder));
  }
}

TEST_F(PackCacheTest, MakesRoomByRemovingWhoWasUsedLongestAgo) {
  const PackCache cache(folder_.path(), 3 * kFileBytes);
  const PackId a = id_of("/m/a.gguf"), b = id_of("/m/b.gguf"), c = id_of("/m/c.gguf"), d = id_of("/m/d.gguf");
  for (const PackId& id : {a, b, c}) ASSERT_TRUE(make_pack(cache, id));
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(cache.path_of(a), now - std::chrono::hours(3));
  fs::last_write_time(cache.path_of(b), now - std::chrono::hours(2));
  fs::last_write_time(cache.path_of(c), now - std::chrono::hours(1));
  ASSERT_TRUE(cache.find(a)) << "now it is the youngest";
  const auto in_use = PackFile::open(cache.path_of(b), b);
  ASSERT_TRUE(in_use);

  std::ofstream(folder_.path() + "/somebody-else.txt") << "stays";
  std::ofstream(folder_.path() + "/gone-0123.pack.draft") << "of a process that was killed";
  ASSERT_TRUE(make_pack(cache, d));
  EXPECT_TRUE(cache.find(a));
  EXPECT_FALSE(cache.find(b));
  EXPECT_TRUE(cache.find(c));
  EXPECT_TRUE(cache.find(d));
  EXPECT_THAT(folder_.files(), SizeIs(4));  // three packs and the text
  EXPECT_TRUE(std::ranges::equal(in_use->packed(), contents())) << "whoever has it mapped keeps it";
}

TEST_F(PackCacheTest, APackLargerThanTheLimitIsRefusedAndRemovesNobody) {
  make();
  const auto claim = PackCache(folder_.path(), kFileBytes - 1).claim(id_of("/m/b.gguf"), {});
  ASSERT_FALSE(claim);
  EXPECT_EQ(claim.error().code, ErrorCode::kExhausted);
  EXPECT_THAT(claim.error().message, HasSubstr("--cache-bytes"));
  EXPECT_TRUE(cache_.find(id_));
}

// What a child process tells by its exit code.
enum : int { kPacked = 10, kFound = 11, kFailed = 12 };

template <class Body>
pid_t child(const Body& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  return pid;
}

int exit_code(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(PackCacheTest, OfSeveralProcessesOnePacksAndAllHaveIt) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(child([&] {
      auto claim = cache_.claim(id_, {});
      if (!claim) return kFailed;
      if (claim->found) return std::ranges::equal(claim->found->packed(), contents()) ? kFound : kFailed;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (!fill(*claim->writer) || !claim->writer->finish(std::string(64, 'b'))) return kFailed;
      return kPacked;
    }));
  }
  std::vector<int> codes;
  for (const pid_t pid : children) codes.push_back(exit_code(pid));
  EXPECT_THAT(codes, ::testing::UnorderedElementsAre(kPacked, kFound, kFound, kFound));
  EXPECT_TRUE(cache_.find(id_));
  EXPECT_THAT(folder_.files(), SizeIs(1));
}

TEST_F(PackCacheTest, TakesOverFromAProcessThatWasKilled) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t pid = child([&] {
    auto claim = cache_.claim(id_, {});
    if (!claim || !claim->writer || !fill(*claim->writer, kBytes / 2)) return kFailed;
    (void)!::write(ready[1], "x", 1);
    for (;;) ::pause();
  });
  char x = 0;
  ASSERT_EQ(::read(ready[0], &x, 1), 1);
  bool waited = false;
  const auto claim = cache_.claim(id_, [&](std::uint64_t done) {
    EXPECT_LE(done, kFileBytes);
    if (!waited) ::kill(pid, SIGKILL);
    waited = true;
  });
  EXPECT_TRUE(waited);
  exit_code(pid);
  ASSERT_TRUE(claim) << claim.error().message;
  ASSERT_TRUE(claim->writer);
  ASSERT_TRUE(fill(*claim->writer));
  EXPECT_TRUE(claim->writer->finish(std::string(64, 'b')));
  EXPECT_TRUE(cache_.find(id_));
}

}  // namespace
}  // namespace octavo
