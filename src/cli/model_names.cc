#include "cli/model_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/environment.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 2> kPackaged = {"smollm2", "gemma3-270m"};

fs::path models_folder() {
  if (const fs::path models = environment("OCTAVO_MODELS"); !models.empty()) return models;
  const fs::path cache = environment("XDG_CACHE_HOME");
  return (cache.empty() ? environment("HOME") / fs::path(".cache") : cache) / "octavo" / "models";
}

}  // namespace

Result<std::string> resolve_model(const std::string& model) {
  std::error_code ignored;
  if (std::find(kPackaged.begin(), kPackaged.end(), model) != kPackaged.end()) {
    const fs::path file = models_folder() / (model + ".gguf");
    if (fs::exists(file, ignored)) return file.string();
    return Error{
        ErrorCode::kNotFound,
        fmt::format("model {} is not on this machine yet (no {}): run ./run fetch {}", model, file.string(), model),
        "MODEL"};
  }
  if (fs::exists(model, ignored)) return model;
  return Error{ErrorCode::kNotFound,
               fmt::format("no such model: '{}' is neither a file nor a folder nor one of the packaged {}", model,
                           fmt::join(kPackaged, ", ")),
               "MODEL"};
}

std::string model_name(const std::string& path) {
  fs::path place = fs::path(path).lexically_normal();
  if (place.filename().empty()) place = place.parent_path();
  std::error_code ignored;
  return (fs::is_directory(place, ignored) ? place.filename() : place.stem()).string();
}

}  // namespace octavo
