#include "kv/block_hash.h"

#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <memory>

#include "base/check.h"

namespace octavo {
namespace {

constexpr std::string_view kRootTag = "octavo kv root 1";
constexpr std::string_view kBlockTag = "octavo kv block 1";

class Sha256 {
 public:
  Sha256() : digest_(EVP_MD_fetch(nullptr, "SHA256", nullptr)), context_(EVP_MD_CTX_new()) {
    OCTAVO_CHECK(digest_ && context_, "OpenSSL provides SHA-256");
  }
  void begin() { OCTAVO_CHECK(EVP_DigestInit_ex(context_.get(), digest_.get(), nullptr) == 1, "SHA-256 starts"); }
  void add(const void* data, std::size_t bytes) {
    OCTAVO_CHECK(EVP_DigestUpdate(context_.get(), data, bytes) == 1, "SHA-256 goes on");
  }
  void add(std::string_view text) { add(text.data(), text.size()); }
  BlockHash end() {
    BlockHash out;
    OCTAVO_CHECK(EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(out.data()), nullptr) == 1,
                 "SHA-256 ends");
    return out;
  }

 private:
  struct Free {
    void operator()(EVP_MD* d) const { EVP_MD_free(d); }
    void operator()(EVP_MD_CTX* c) const { EVP_MD_CTX_free(c); }
  };
  std::unique_ptr<EVP_MD, Free> digest_;
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

Sha256& sha256() {
  thread_local Sha256 instance;  // set-up costs more than a block
  instance.begin();
  return instance;
}

void add_counted(Sha256& sha, std::string_view text) {
  const std::uint64_t length = text.size();
  sha.add(&length, sizeof length), sha.add(text);
}

}  // namespace

BlockHash root_hash(std::string_view model_fingerprint, std::string_view salt) {
  Sha256& sha = sha256();
  sha.add(kRootTag), add_counted(sha, model_fingerprint), add_counted(sha, salt);
  return sha.end();
}

BlockHash child_hash(const BlockHash& parent, std::span<const TokenId> tokens) {
  Sha256& sha = sha256();
  sha.add(kBlockTag), sha.add(parent.data(), parent.size()), sha.add(tokens.data(), tokens.size_bytes());
  return sha.end();
}

}  // namespace octavo
