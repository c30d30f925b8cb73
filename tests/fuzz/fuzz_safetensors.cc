// Any bytes as a safetensors file.
#include <cstddef>
#include <cstdint>
#include <span>

#include "load/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = octavo::parse_safetensors("fuzz", std::as_bytes(std::span(data, size)));
  if (!file) return 0;
  unsigned sum = 0;
  for (const auto& tensor : file->tensors) {
    if (!tensor.bytes.empty()) sum += std::to_integer<unsigned>(tensor.bytes.back());
  }
  volatile unsigned read = sum;  // the reads must happen
  (void)read;
  return 0;
}
