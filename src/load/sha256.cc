#include "load/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "base/check.h"

namespace octavo {

struct Sha256::Context {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> evp{EVP_MD_CTX_new(), EVP_MD_CTX_free};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  OCTAVO_CHECK(EVP_DigestInit_ex(context_->evp.get(), EVP_sha256(), nullptr) == 1, "OpenSSL has SHA-256");
}

Sha256::~Sha256() = default;

void Sha256::add(std::span<const std::byte> bytes) {
  OCTAVO_CHECK(EVP_DigestUpdate(context_->evp.get(), bytes.data(), bytes.size()) == 1, "SHA-256 takes any bytes");
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest{};
  OCTAVO_CHECK(EVP_DigestFinal_ex(context_->evp.get(), digest.data(), nullptr) == 1, "SHA-256 ends once");
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace octavo
