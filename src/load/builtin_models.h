// Public models by name: their published sizes, as the config.json that they come with would say them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

struct BuiltinModel {
  std::string config;            // JSON
  std::uint64_t parameters = 0;  // of models that are not supported; else the config says it
};

/// nullopt: no such name.
[[nodiscard]] std::optional<BuiltinModel> find_builtin_model(std::string_view name);
[[nodiscard]] std::vector<std::string> builtin_model_names();

}  // namespace octavo
