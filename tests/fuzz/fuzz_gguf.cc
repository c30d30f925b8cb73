// Any bytes as a GGUF file: an error or tables whose every value can be read.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "load/gguf_parser.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto tables = octavo::parse_gguf("fuzz", std::as_bytes(std::span(data, size)));
  if (!tables) return 0;
  std::uint64_t sum = 0;
  for (const auto& [key, value] : tables->metadata) {
    sum += key.size() + value.describe().size();
    if (const auto text = value.as<std::string_view>()) {
      for (const char c : *text) sum += static_cast<unsigned char>(c);
    }
    if (const auto texts = value.as<std::vector<std::string_view>>()) {
      for (const std::string_view text : *texts) sum += text.empty() ? 0 : static_cast<unsigned char>(text.back());
    }
    if (const auto numbers = value.as<std::vector<std::uint32_t>>()) sum += numbers->size();
    if (const auto flags = value.as<std::vector<bool>>()) sum += flags->size();
    if (const auto number = value.as<double>()) sum += *number > 0 ? 1 : 0;
  }
  for (const auto& tensor : tables->tensors) {
    sum += std::to_integer<unsigned>(tensor.bytes.front()) + std::to_integer<unsigned>(tensor.bytes.back());
  }
  volatile std::uint64_t read = sum;  // the reads must happen
  (void)read;
  return 0;
}
