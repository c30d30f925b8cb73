// Where what was worked out is kept for later starts.
#pragma once
#include <filesystem>
#include <string>

#include "base/environment.h"

namespace octavo {

/// $OCTAVO_CACHE is "off".
[[nodiscard]] inline bool cache_switched_off() { return environment("OCTAVO_CACHE") == "off"; }

/// $OCTAVO_CACHE, else octavo/`part` in $XDG_CACHE_HOME or ~/.cache. Empty: it is off, or there is no home.
[[nodiscard]] inline std::string cache_folder(const char* part) {
  if (cache_switched_off()) return "";
  if (std::string own = environment("OCTAVO_CACHE"); !own.empty()) return own;
  const std::filesystem::path cache = environment("XDG_CACHE_HOME"), home = environment("HOME");
  if (cache.empty() && home.empty()) return "";
  return (cache.empty() ? home / ".cache" : cache) / "octavo" / part;
}

}  // namespace octavo
