#include "kv/block_hash.h"

// The plain functions take nothing from the heap; the EVP interface allocates for every digest.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include <cstdint>

#include "base/check.h"

namespace octavo {
namespace {

constexpr std::string_view kRootTag = "octavo kv root 1";
constexpr std::string_view kBlockTag = "octavo kv block 1";

class Sha256 {
 public:
  Sha256() { OCTAVO_CHECK(SHA256_Init(&context_) == 1, "SHA-256 starts"); }
  void add(const void* data, std::size_t bytes) {
    OCTAVO_CHECK(SHA256_Update(&context_, data, bytes) == 1, "SHA-256 goes on");
  }
  void add(std::string_view text) { add(text.data(), text.size()); }
  BlockHash end() {
    BlockHash out;
    OCTAVO_CHECK(SHA256_Final(reinterpret_cast<unsigned char*>(out.data()), &context_) == 1, "SHA-256 ends");
    return out;
  }

 private:
  SHA256_CTX context_;
};

void add_counted(Sha256& sha, std::string_view text) {
  const std::uint64_t length = text.size();
  sha.add(&length, sizeof length), sha.add(text);
}

}  // namespace

BlockHash root_hash(std::string_view model_fingerprint, std::string_view salt) {
  Sha256 sha;
  sha.add(kRootTag), add_counted(sha, model_fingerprint), add_counted(sha, salt);
  return sha.end();
}

BlockHash child_hash(const BlockHash& parent, std::span<const TokenId> tokens) {
  Sha256 sha;
  sha.add(kBlockTag), sha.add(parent.data(), parent.size()), sha.add(tokens.data(), tokens.size_bytes());
  return sha.end();
}

}  // namespace octavo
