// Writes small GGUF files for tests: metadata and tensors in, bytes out. Nothing is validated, so that hostile files
// can be written too.
#pragma once
#include <unistd.h>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "load/gguf_value.h"
#include "tensor/tensor_type.h"

namespace octavo::testing {

/// Appends little-endian numbers and GGUF strings.
class Bytes {
 public:
  template <class T>
  Bytes& number(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return raw(&value, sizeof value);
  }
  Bytes& string(std::string_view text) {
    number<std::uint64_t>(text.size());
    return raw(text.data(), text.size());
  }
  Bytes& raw(const void* data, std::size_t size) {
    text_.append(static_cast<const char*>(data), size);
    return *this;
  }
  Bytes& pad_to(std::size_t alignment) {
    text_.resize((text_.size() + alignment - 1) / alignment * alignment, '\0');
    return *this;
  }
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::size_t size() const { return text_.size(); }

 private:
  std::string text_;
};

class GgufWriter {
 public:
  explicit GgufWriter(std::uint32_t version = 3) : version_(version) {}

  /// T is bool, float, double, an integer of 8 to 64 bits or a string; or a vector of one of these but bool.
  template <class T>
  GgufWriter& set(std::string_view key, const T& value) {
    ++num_metadata_;
    metadata_.string(key);
    put_typed(value);
    return *this;
  }
  GgufWriter& set(std::string_view key, const char* text) { return set(key, std::string(text)); }
  /// Any bytes as an entry: the value type and what follows are the caller's.
  GgufWriter& set_raw(std::string_view key, const Bytes& type_and_value) {
    ++num_metadata_;
    metadata_.string(key).raw(type_and_value.text().data(), type_and_value.size());
    return *this;
  }

  /// `dims` innermost first ({cols, rows}); `data` as `type` stores it.
  GgufWriter& add_tensor(std::string_view name, std::uint32_t type_id, const std::vector<std::uint64_t>& dims,
                         std::string_view data) {
    ++num_tensors_;
    data_.pad_to(kAlignment);
    tensors_.string(name).number<std::uint32_t>(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t dim : dims) tensors_.number(dim);
    tensors_.number(type_id).number<std::uint64_t>(data_.size());
    data_.raw(data.data(), data.size());
    return *this;
  }
  GgufWriter& add_f32(std::string_view name, const std::vector<std::uint64_t>& dims, const std::vector<float>& values) {
    const std::string_view data(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    return add_tensor(name, static_cast<std::uint32_t>(TensorType::kF32), dims, data);
  }

  [[nodiscard]] std::string bytes() const {
    Bytes out;
    out.raw("GGUF", 4).number(version_).number(num_tensors_).number(num_metadata_);
    out.raw(metadata_.text().data(), metadata_.size()).raw(tensors_.text().data(), tensors_.size());
    if (num_tensors_ > 0) out.pad_to(kAlignment).raw(data_.text().data(), data_.size());
    return out.text();
  }

 private:
  static constexpr std::size_t kAlignment = 32;

  template <class T>
  static constexpr GgufValueType type_of() {
    if constexpr (std::is_same_v<T, std::uint8_t>) return GgufValueType::kU8;
    if constexpr (std::is_same_v<T, std::int8_t>) return GgufValueType::kI8;
    if constexpr (std::is_same_v<T, std::uint16_t>) return GgufValueType::kU16;
    if constexpr (std::is_same_v<T, std::int16_t>) return GgufValueType::kI16;
    if constexpr (std::is_same_v<T, std::uint32_t>) return GgufValueType::kU32;
    if constexpr (std::is_same_v<T, std::int32_t>) return GgufValueType::kI32;
    if constexpr (std::is_same_v<T, std::uint64_t>) return GgufValueType::kU64;
    if constexpr (std::is_same_v<T, std::int64_t>) return GgufValueType::kI64;
    if constexpr (std::is_same_v<T, float>) return GgufValueType::kF32;
    if constexpr (std::is_same_v<T, double>) return GgufValueType::kF64;
    if constexpr (std::is_same_v<T, bool>) return GgufValueType::kBool;
    return GgufValueType::kString;
  }
  template <class T>
  void put(const T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      metadata_.number(value);
    } else {
      metadata_.string(value);
    }
  }
  template <class T>
  void put_typed(const T& value) {
    metadata_.number(type_of<T>());
    put(value);
  }
  template <class T>
  void put_typed(const std::vector<T>& values) {
    metadata_.number(GgufValueType::kArray).number(type_of<T>()).template number<std::uint64_t>(values.size());
    for (const T& value : values) put(value);
  }

  std::uint32_t version_;
  std::uint64_t num_tensors_ = 0, num_metadata_ = 0;
  Bytes metadata_, tensors_, data_;
};

/// A file of the test's own in the temporary folder, removed at the end of the scope.
class TempFile {
 public:
  /// `name` becomes the end of the file's name.
  explicit TempFile(std::string_view bytes, const std::string& name = "test.gguf") : path_(unique_path(name)) {
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  ~TempFile() { std::filesystem::remove(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  static std::string unique_path(const std::string& name) {
    static int counter = 0;
    const std::string prefix = "octavo-" + std::to_string(::getpid()) + "-" + std::to_string(counter++) + "-";
    return (std::filesystem::temp_directory_path() / (prefix + name)).string();
  }
  std::string path_;
};

}  // namespace octavo::testing
