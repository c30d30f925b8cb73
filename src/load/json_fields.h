// JSON out of foreign files: bounded depth, no duplicate keys, typed fields with errors that name them.
#pragma once
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "octavo/result.h"

namespace octavo {

/// An object at the top, at most 32 levels deep. kCorrupt with the path and the parser's reason otherwise.
[[nodiscard]] Result<nlohmann::json> parse_json_object(const std::string& path, std::string_view text);

/// A view of one object. Absent fields and nulls are the same.
class JsonFields {
 public:
  /// `where` is for the messages: the path, and the place within it.
  JsonFields(std::string where, const nlohmann::json& object) : where_(std::move(where)), object_(&object) {}

  [[nodiscard]] const std::string& where() const { return where_; }
  [[nodiscard]] const nlohmann::json* find(const char* key) const {
    const auto at = object_->find(key);
    return at == object_->end() || at->is_null() ? nullptr : &*at;
  }
  /// T is bool, std::uint32_t, float or std::string.
  template <class T>
  [[nodiscard]] Result<std::optional<T>> get(const char* key) const {
    const nlohmann::json* value = find(key);
    if (value == nullptr) return std::optional<T>();
    std::optional<T> converted = convert<T>(*value);
    if (!converted) return refuse(key, "is not the kind or range of value that it stands for");
    return converted;
  }
  template <class T>
  [[nodiscard]] Result<T> require(const char* key) const {
    OCTAVO_TRY(std::optional<T> value, get<T>(key));
    if (!value) return refuse(key, "is missing");
    return std::move(*value);
  }
  /// A nested object; nullopt if absent.
  [[nodiscard]] Result<std::optional<JsonFields>> object(const char* key) const {
    const nlohmann::json* value = find(key);
    if (value == nullptr) return std::optional<JsonFields>();
    if (!value->is_object()) return refuse(key, "is not an object");
    return std::optional(JsonFields(fmt::format("{}: {}", where_, key), *value));
  }
  [[nodiscard]] Error refuse(const char* key, std::string_view why,
                             ErrorCode code = ErrorCode::kInvalidArgument) const {
    return {code, fmt::format("{}: {} {}", where_, key, why), key};
  }

 private:
  template <class T>
  static std::optional<T> convert(const nlohmann::json& value) {
    if constexpr (std::is_same_v<T, bool>) {
      if (value.is_boolean()) return value.get<bool>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (value.is_string()) return value.get<std::string>();
    } else if constexpr (std::is_same_v<T, float>) {
      if (value.is_number()) return static_cast<float>(value.get<double>());
    } else {
      static_assert(std::is_same_v<T, std::uint32_t>);
      if (value.is_number_unsigned() && std::in_range<T>(value.get<std::uint64_t>())) {
        return static_cast<T>(value.get<std::uint64_t>());
      }
    }
    return std::nullopt;
  }

  std::string where_;
  const nlohmann::json* object_;
};

}  // namespace octavo
