#include "load/fingerprint.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/check.h"

namespace octavo {
namespace {

constexpr std::size_t kSampleBytes = 4096;

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    OCTAVO_CHECK(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1, "OpenSSL has SHA-256");
  }
  void add(std::span<const std::byte> bytes) {
    OCTAVO_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1, "SHA-256 takes any bytes");
  }
  [[nodiscard]] std::string hex() {
    std::array<unsigned char, 32> digest{};
    OCTAVO_CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1, "SHA-256 ends once");
    return fmt::format("{:02x}", fmt::join(digest, ""));
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

std::string fingerprint_of(const ModelSource& source) {
  Sha256 hash;
  for (const auto header : source.headers) hash.add(header);
  for (const StoredTensor& tensor : source.tensors) {
    const std::size_t sample = std::min(kSampleBytes, tensor.bytes.size());
    hash.add(tensor.bytes.first(sample));
    hash.add(tensor.bytes.last(sample));
  }
  return hash.hex();
}

}  // namespace octavo
