// SHA-256 of bytes that come piece by piece (OpenSSL's).
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace octavo {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  [[nodiscard]] std::string hex();  // once, at the end

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace octavo
