// The pack cache as an engine uses it: the same bits and the same name with and without, packed again when in doubt,
// requests failed when it turns out wrong.
#include "octavo/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <future>
#include <thread>

#include "engine/load_weights.h"
#include "load/open_checkpoint.h"
#include "load/pack_format.h"
#include "support/pack_folder.h"
#include "support/tiny_model.h"

namespace octavo::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Start {
  std::vector<std::byte> packed;
  std::string sha256;
  WeightsReport report;
};

class PackTest : public ::testing::Test {
 protected:
  PackTest() {
    config_.model = file_.path();
    config_.threads = 2;
  }

  static Start start(const EngineConfig& config) {
    const auto checkpoint = open_checkpoint(config.model);
    EXPECT_TRUE(checkpoint) << checkpoint.error().message;
    ThreadPool pool(2);
    auto loaded = load_weights(config, **checkpoint, pool, {});
    EXPECT_TRUE(loaded) << loaded.error().message;
    const Weights& weights = *loaded->weights;
    const std::byte* begin = weights.embedding.panels;  // the first of all
    return {{begin, begin + weights.bytes()}, loaded->source_sha256, loaded->report};
  }
  Start start() const { return start(config_); }

  static Request long_request() {
    Request request;
    request.prompt = {{1}, {2}, {3}};
    request.params.max_tokens = 400;
    request.params.ignore_eos = true;
    request.params.seed = 1;
    return request;
  }

  /// A tensor's byte that the key does not sample: the middle of the largest.
  std::uint64_t unsampled() const {
    const auto checkpoint = open_checkpoint(file_.path());
    const auto embedding = (*checkpoint)->tensor(Role::kTokenEmbedding);
    return static_cast<std::uint64_t>(embedding->data - (*checkpoint)->files()[0]->bytes().data()) + 1000;
  }

  PackFolder folder_;
  TempFile file_{write_tiny_model({.tied = false}).bytes()};
  EngineConfig config_;
};

TEST_F(PackTest, SameBytesAndSameNameColdCachedAndWithout) {
  EngineConfig without = config_;
  without.pack_cache = false;
  const Start plain = start(without);
  EXPECT_THAT(folder_.files(), IsEmpty());
  const Start cold = start(), cached = start();
  EXPECT_TRUE(plain.report.pack.empty());
  EXPECT_FALSE(cold.report.cached);
  EXPECT_TRUE(cached.report.cached);
  EXPECT_EQ(cached.report.pack, cold.report.pack);
  for (const Start* other : {&cold, &cached}) {
    EXPECT_EQ(other->packed, plain.packed);
    EXPECT_EQ(other->sha256, plain.sha256);
    EXPECT_EQ(other->report.notice, "");
  }
}

TEST_F(PackTest, EveryFamilyAndFolderComesBackTheSame) {
  std::vector<std::unique_ptr<TempFile>> files;
  std::vector<std::string> models = {OCTAVO_SOURCE_DIR "/tests/golden/tiny/llama",
                                     OCTAVO_SOURCE_DIR "/tests/golden/tiny/gemma3"};
  for (const TinyModel& model : one_tiny_model_per_arch()) {
    files.push_back(std::make_unique<TempFile>(write_tiny_model(model).bytes()));
    models.push_back(files.back()->path());
  }
  for (const std::string& model : models) {
    SCOPED_TRACE(model);
    config_.model = model;
    EngineConfig without = config_;
    without.pack_cache = false;
    const Start plain = start(without), cold = start(), cached = start();
    EXPECT_TRUE(cached.report.cached);
    EXPECT_EQ(cold.packed, plain.packed);
    EXPECT_EQ(cached.packed, plain.packed);
    EXPECT_EQ(cached.sha256, plain.sha256);
  }
  EXPECT_THAT(folder_.files(), SizeIs(models.size()));
}

TEST_F(PackTest, EveryNumericsHasAPackOfItsOwn) {
  const TempFile bf16(write_tiny_model({.bf16 = true}).bytes());
  config_.model = bf16.path();
  EngineConfig f32 = config_;
  f32.numerics = Numerics::kF32;
  const Start a = start(), b = start(f32);
  EXPECT_FALSE(b.report.cached);
  EXPECT_TRUE(start().report.cached);
  EXPECT_TRUE(start(f32).report.cached);
  EXPECT_NE(a.report.pack, b.report.pack);
  EXPECT_EQ(a.sha256, b.sha256);
}

TEST_F(PackTest, PacksAgainWhenTheModelMayHaveChanged) {
  const auto packs_again = [&](const char* what) {
    const Start changed = start();
    EXPECT_FALSE(changed.report.cached) << what;
    EXPECT_THAT(changed.report.notice, HasSubstr("the model has changed since")) << what;
    EXPECT_TRUE(start().report.cached) << what;
  };
  const std::string path = file_.path();
  EXPECT_FALSE(start().report.cached);
  fs::last_write_time(path, fs::last_write_time(path) - std::chrono::nanoseconds(1000));
  packs_again("mtime");
  const auto time = fs::last_write_time(path);
  fs::copy_file(path, path + ".copy");
  fs::rename(path + ".copy", path);
  fs::last_write_time(path, time);
  packs_again("inode");
  const std::uint64_t size = fs::file_size(path);
  fs::resize_file(path, size + 32);
  fs::last_write_time(path, time);
  packs_again("size");
  fs::resize_file(path, size);
  fs::last_write_time(path, time);
  packs_again("size");
  flip_bit(path, size - 3);  // the end of the last tensor
  packs_again("a sampled byte");
  EXPECT_THAT(folder_.files(), SizeIs(1)) << "the stale ones are gone";
}

TEST_F(PackTest, PacksAgainWhenThePackIsDamaged) {
  const std::string pack = start().report.pack;
  flip_bit(pack, 100);
  Start again = start();
  EXPECT_FALSE(again.report.cached);
  EXPECT_THAT(again.report.notice, HasSubstr("header is damaged"));
  fs::resize_file(pack, fs::file_size(pack) - 64);
  again = start();
  EXPECT_THAT(again.report.notice, HasSubstr("wrong length"));
  EXPECT_TRUE(start().report.cached);
}

TEST_F(PackTest, WithoutACacheThatTakesItThereIsANotice) {
  const Start plain = start();
  ::setenv("OCTAVO_CACHE", "/proc/octavo", 1);
  const Start refused = start();
  EXPECT_TRUE(refused.report.pack.empty());
  EXPECT_THAT(refused.report.notice, HasSubstr("/proc/octavo"));
  EXPECT_EQ(refused.packed, plain.packed);
  EXPECT_EQ(refused.sha256, plain.sha256);

  ::setenv("OCTAVO_CACHE", folder_.path().c_str(), 1);
  fs::remove(plain.report.pack);
  config_.cache_bytes = 1000;
  const Start too_large = start();
  EXPECT_TRUE(too_large.report.pack.empty());
  EXPECT_THAT(too_large.report.notice, HasSubstr("--cache-bytes"));
}

TEST_F(PackTest, EnginesOfBothStartsSayTheSame) {
  std::string fingerprint;
  std::vector<TokenId> tokens;
  for (const bool cached : {false, true}) {
    const auto engine = Engine::load(config_);
    ASSERT_TRUE(engine) << engine.error().message;
    EXPECT_EQ((*engine)->report().weights.cached, cached);
    auto all = (*engine)->generate({long_request()});
    ASSERT_TRUE(all) << all.error().message;
    if (cached) {
      EXPECT_EQ((*engine)->report().fingerprint, fingerprint);
      EXPECT_EQ((*all)[0][0].tokens, tokens);
    }
    fingerprint = (*engine)->report().fingerprint;
    tokens = (*all)[0][0].tokens;
    EXPECT_TRUE((*engine)->health());
  }
}

/// Starts an engine on a pack that is wrong, and sees it fail.
void expect_failure(const EngineConfig& config, Request request, const std::string& says) {
  auto loaded = Engine::load(config);
  ASSERT_TRUE(loaded) << loaded.error().message;
  Engine& engine = **loaded;
  const auto healthy = [&] { return engine.health().ok(); };
  const auto wait_for_failure = [&] {
    while (healthy()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  std::promise<OutputEvent> last;
  bool first = true;
  const auto id = engine.submit(request, [&](OutputEvent&& event) {
    if (std::exchange(first, false)) wait_for_failure();  // so that the request runs when it comes
    if (event.last) last.set_value(std::move(event));
  });
  if (id) {
    const OutputEvent event = last.get_future().get();
    EXPECT_EQ(event.finish, FinishReason::kError);
    ASSERT_TRUE(event.error);
    EXPECT_THAT(event.error->message, HasSubstr(says));
    EXPECT_THAT(event.error->message, HasSubstr("restart"));
  }
  wait_for_failure();
  const auto refused = engine.submit(request, [](OutputEvent&&) {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(refused.error().message, HasSubstr(says));
  EXPECT_FALSE(engine.generate({request}));
}

TEST_F(PackTest, RequestsFailWhenTheModelTurnsOutDifferent) {
  const Start before = start();
  flip_bit(file_.path(), unsampled());
  expect_failure(config_, long_request(), "the model is not what");
  EXPECT_THAT(folder_.files(), IsEmpty());
  const Start after = start();
  EXPECT_FALSE(after.report.cached);
  EXPECT_NE(after.sha256, before.sha256);
}

TEST_F(PackTest, RequestsFailWhenThePackTurnsOutDamaged) {
  const Start before = start();
  flip_bit(before.report.pack, packed_offset_of(before.packed.size()) + 4000);
  expect_failure(config_, long_request(), "damaged");
  EXPECT_EQ(start().packed, before.packed);
}

TEST_F(PackTest, PackingAheadServesTheNextStart) {
  EXPECT_FALSE(find_pack(config_));
  const auto packed = pack_model(config_);
  ASSERT_TRUE(packed) << packed.error().message;
  EXPECT_FALSE(packed->was_there);
  ASSERT_TRUE(find_pack(config_));
  EXPECT_EQ(find_pack(config_)->path, packed->path);
  const Start next = start();
  EXPECT_TRUE(next.report.cached);
  EXPECT_EQ(next.sha256, packed->model_sha256);
  EXPECT_EQ(next.packed.size(), packed->bytes);

  const auto checked = pack_model(config_);
  ASSERT_TRUE(checked);
  EXPECT_TRUE(checked->was_there);

  flip_bit(packed->path, fs::file_size(packed->path) - 100);
  const auto again = pack_model(config_);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_FALSE(again->was_there);
  EXPECT_THAT(again->replaced, HasSubstr("damaged"));
  EXPECT_EQ(start().packed, next.packed);
}

TEST_F(PackTest, PackingAheadWithoutACacheIsAnError) {
  ::setenv("OCTAVO_CACHE", "/proc/octavo", 1);
  EXPECT_EQ(pack_model(config_).error().code, ErrorCode::kIo);
  ::setenv("OCTAVO_CACHE", "off", 1);
  EXPECT_THAT(pack_model(config_).error().message, HasSubstr("OCTAVO_CACHE"));
  EXPECT_EQ(start().report.notice, "") << "what was asked for is no news";
}

}  // namespace
}  // namespace octavo::testing
