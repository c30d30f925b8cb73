// GGUF v2 and v3, little-endian: typed metadata and a table of tensors over a mapped file.
//
// Nothing is copied: keys, strings and tensor bytes point into the map and live as long as the GgufFile. Every count,
// length, offset and size is checked against the file before it is used, so a hostile file costs an error with file,
// byte offset and reason. Format: the GGUF specification of the ggml project.
// Threads: immutable after opening.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_map.h"
#include "load/gguf_parser.h"
#include "load/gguf_value.h"
#include "octavo/result.h"

namespace octavo {

class GgufFile {
 public:
  /// Opens one file, or all parts when `path` is the first of a split ("x-00001-of-00003.gguf").
  /// kCorrupt: the bytes contradict the format. kUnsupported: version 1, big-endian, an unread tensor type.
  [[nodiscard]] static Result<GgufFile> open(const std::string& path);

  [[nodiscard]] const std::string& path() const { return parts_.front().map.path(); }
  [[nodiscard]] std::uint32_t version() const { return parts_.front().tables.version; }
  [[nodiscard]] std::uint64_t file_bytes() const;  // of all parts

  /// Metadata by key, of the first part, in the order of the keys.
  [[nodiscard]] const std::map<std::string_view, GgufValue>& metadata() const { return parts_.front().tables.metadata; }
  [[nodiscard]] const GgufValue* find(std::string_view key) const;

  /// The value of `key` as T (see GgufValue::as): nullopt if absent, kInvalidArgument naming the key if it is not a T.
  template <class T>
  [[nodiscard]] Result<std::optional<T>> get(std::string_view key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) return std::optional<T>();
    std::optional<T> converted = value->as<T>();
    if (!converted) return wrong_type(key, *value);
    return converted;
  }
  template <class T>
  [[nodiscard]] Result<T> get_or(std::string_view key, T fallback) const {
    OCTAVO_TRY(std::optional<T> value, get<T>(key));
    return value ? std::move(*value) : std::move(fallback);
  }
  template <class T>
  [[nodiscard]] Result<T> require(std::string_view key) const {
    OCTAVO_TRY(std::optional<T> value, get<T>(key));
    if (!value) return missing(key);
    return std::move(*value);
  }
  /// One number per layer: an array of `layers` entries, or one scalar for all. nullopt if absent.
  [[nodiscard]] Result<std::optional<std::vector<std::uint32_t>>> get_per_layer(std::string_view key,
                                                                                std::uint32_t layers) const;

  [[nodiscard]] const std::vector<GgufTensor>& tensors() const { return tensors_; }  // of all parts, in file order
  [[nodiscard]] const GgufTensor* find_tensor(std::string_view name) const;

  /// The bytes before the tensor data of each part: magic, metadata and tensor table.
  [[nodiscard]] std::vector<std::span<const std::byte>> headers() const;
  [[nodiscard]] std::vector<const FileMap*> maps() const;  // of the parts

 private:
  struct Part {
    FileMap map;
    GgufTables tables;
  };
  explicit GgufFile(Part first) { parts_.push_back(std::move(first)); }
  [[nodiscard]] static Result<Part> open_part(const std::string& path);
  [[nodiscard]] Result<> open_other_parts();
  [[nodiscard]] Result<> gather_tensors();
  [[nodiscard]] Error wrong_type(std::string_view key, const GgufValue& value) const;
  [[nodiscard]] Error missing(std::string_view key) const;

  std::vector<Part> parts_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string_view, std::size_t> tensor_index_;
};

}  // namespace octavo
