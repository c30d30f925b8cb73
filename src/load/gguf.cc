#include "load/gguf.h"

#include <fmt/format.h>

namespace octavo {
namespace {

constexpr std::string_view kSplitNumber = "split.no", kSplitCount = "split.count",
                           kSplitTensors = "split.tensors.count";

/// "dir/name-00001-of-00003.gguf" with 3 parts to "dir/name"; nullopt if the path is not the first of so many.
std::optional<std::string> split_prefix(const std::string& path, std::uint32_t parts) {
  const std::string suffix = fmt::format("-00001-of-{:05}.gguf", parts);
  if (!path.ends_with(suffix)) return std::nullopt;
  return path.substr(0, path.size() - suffix.size());
}

}  // namespace

Result<GgufFile> GgufFile::open(const std::string& path) {
  OCTAVO_TRY(Part first, open_part(path));
  GgufFile file(std::move(first));
  OCTAVO_CHECK_OK(file.open_other_parts());
  OCTAVO_CHECK_OK(file.gather_tensors());
  return file;
}

Result<GgufFile::Part> GgufFile::open_part(const std::string& path) {
  OCTAVO_TRY(FileMap map, FileMap::open(path));
  OCTAVO_TRY(GgufTables tables, parse_gguf(path, map.bytes()));
  return Part{std::move(map), std::move(tables)};
}

Result<> GgufFile::open_other_parts() {
  OCTAVO_TRY(const auto count, get_or<std::uint32_t>(kSplitCount, 1));
  OCTAVO_TRY(const auto number, get_or<std::uint32_t>(kSplitNumber, 0));
  if (count <= 1) return Ok{};
  const std::string first = path();
  const std::optional<std::string> prefix = split_prefix(first, count);
  if (number != 0 || !prefix) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: this is part {} of a model split into {} files; give the file whose name ends in "
                             "-00001-of-{:05}.gguf, with the others beside it",
                             first, number + 1, count, count),
                 std::string(kSplitNumber)};
  }
  for (std::uint32_t i = 1; i < count; ++i) {
    OCTAVO_TRY(Part part, open_part(fmt::format("{}-{:05}-of-{:05}.gguf", *prefix, i + 1, count)));
    const auto says = [&](std::string_view key, std::uint32_t expected) {
      const auto at = part.tables.metadata.find(key);
      return at != part.tables.metadata.end() && at->second.as<std::uint32_t>() == expected;
    };
    if (!says(kSplitNumber, i) || !says(kSplitCount, count)) {
      return Error{
          ErrorCode::kCorrupt,
          fmt::format("{}: {} and {} do not say part {} of {}", part.map.path(), kSplitNumber, kSplitCount, i, count),
          std::string(kSplitNumber)};
    }
    parts_.push_back(std::move(part));
  }
  return Ok{};
}

Result<> GgufFile::gather_tensors() {
  for (Part& part : parts_) {
    for (GgufTensor& tensor : part.tables.tensors) {
      if (!tensor_index_.emplace(tensor.name, tensors_.size()).second) {
        return Error{ErrorCode::kCorrupt, fmt::format("{}: tensor {} occurs twice", part.map.path(), tensor.name), ""};
      }
      tensors_.push_back(std::move(tensor));
    }
    part.tables.tensors.clear();
  }
  OCTAVO_TRY(const auto declared, get<std::uint64_t>(kSplitTensors));
  if (declared && *declared != tensors_.size()) {
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("{}: {} says {}, the parts hold {} tensors", path(), kSplitTensors, *declared, tensors_.size()),
        std::string(kSplitTensors)};
  }
  return Ok{};
}

std::uint64_t GgufFile::file_bytes() const {
  std::uint64_t sum = 0;
  for (const Part& part : parts_) sum += part.map.bytes().size();
  return sum;
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto at = metadata().find(key);
  return at == metadata().end() ? nullptr : &at->second;
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const auto at = tensor_index_.find(name);
  return at == tensor_index_.end() ? nullptr : &tensors_[at->second];
}

std::vector<std::span<const std::byte>> GgufFile::headers() const {
  std::vector<std::span<const std::byte>> spans;
  for (const Part& part : parts_) spans.push_back(part.map.bytes().first(part.tables.header_bytes));
  return spans;
}

std::vector<const FileMap*> GgufFile::maps() const {
  std::vector<const FileMap*> maps;
  for (const Part& part : parts_) maps.push_back(&part.map);
  return maps;
}

Result<std::optional<std::vector<std::uint32_t>>> GgufFile::get_per_layer(std::string_view key,
                                                                          std::uint32_t layers) const {
  using Numbers = std::vector<std::uint32_t>;
  const GgufValue* value = find(key);
  if (value == nullptr) return std::optional<Numbers>();
  if (!value->is_array) {
    OCTAVO_TRY(const auto number, require<std::uint32_t>(key));
    return std::optional(Numbers(layers, number));
  }
  OCTAVO_TRY(Numbers numbers, require<Numbers>(key));
  if (numbers.size() != layers) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: {} has {} entries, the model has {} layers", path(), key, numbers.size(), layers),
                 std::string(key)};
  }
  return std::optional(std::move(numbers));
}

Error GgufFile::wrong_type(std::string_view key, const GgufValue& value) const {
  return {ErrorCode::kInvalidArgument,
          fmt::format("{}: metadata key {} is {}, which is not the kind or range of value that it stands for", path(),
                      key, value.describe()),
          std::string(key)};
}

Error GgufFile::missing(std::string_view key) const {
  return {ErrorCode::kInvalidArgument, fmt::format("{}: metadata key {} is missing", path(), key), std::string(key)};
}

}  // namespace octavo
