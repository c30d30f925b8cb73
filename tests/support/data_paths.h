// Where tests find what is not in the repository: real models and the independent oracles.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>

namespace octavo::testing {

inline std::string environment_or(const char* name, const std::string& fallback) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : fallback;
}

/// A packaged model by name: $OCTAVO_MODELS or the cache folder; empty if it has not been fetched.
inline std::string model_path(const std::string& name) {
  const std::string cache = environment_or("XDG_CACHE_HOME", environment_or("HOME", "/root") + "/.cache");
  const std::string path = environment_or("OCTAVO_MODELS", cache + "/octavo/models") + "/" + name + ".gguf";
  return std::filesystem::exists(path) ? path : "";
}

/// A file or folder of the oracles: $OCTAVO_ORACLES or ../shared/oracles beside the repository; empty if absent.
inline std::string oracle_path(const std::string& relative) {
  const std::string path = environment_or("OCTAVO_ORACLES", OCTAVO_SOURCE_DIR "/../shared/oracles") + "/" + relative;
  return std::filesystem::exists(path) ? path : "";
}

}  // namespace octavo::testing
