// Any text as config.json: an error or a spec within its limits.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "load/hf_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto config = octavo::parse_hf_config("fuzz", {reinterpret_cast<const char*>(data), size});
  if (!config) return 0;
  const auto spec = octavo::make_spec(*config->arch, config->facts);
  if (spec && (spec->layers.empty() || spec->ropes.empty())) __builtin_trap();
  return 0;
}
