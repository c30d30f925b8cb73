#include "load/gguf_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include "load/byte_reader.h"

namespace octavo {
namespace {

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr std::uint64_t kMaxKeyBytes = 65535, kMaxNameBytes = 64;
constexpr std::uint32_t kMaxArrayDepth = 4, kMaxDims = 4;
constexpr std::uint32_t kDefaultAlignment = 32;
constexpr std::string_view kAlignmentKey = "general.alignment";

// The fewest bytes that one entry can take: they bound a count before anything is allocated.
constexpr std::uint64_t kMinStringBytes = 8;
constexpr std::uint64_t kMinArrayBytes = 4 + 8;
constexpr std::uint64_t kMinMetadataBytes = kMinStringBytes + 4 + 1;
constexpr std::uint64_t kMinTensorBytes = kMinStringBytes + 4 + 8 + 4 + 8;

std::optional<std::uint64_t> checked_multiply(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b) return std::nullopt;
  return a * b;
}

Result<std::uint64_t> read_count(ByteReader& in, std::uint64_t min_entry_bytes, std::string_view what) {
  OCTAVO_TRY(const auto count, in.number<std::uint64_t>(what));
  if (count > in.remaining() / min_entry_bytes) {
    return in.corrupt(fmt::format("{} {} cannot fit in the {} bytes left", what, count, in.remaining()));
  }
  return count;
}

Result<GgufValueType> read_value_type(ByteReader& in) {
  OCTAVO_TRY(const auto id, in.number<std::uint32_t>("value type"));
  if (id > static_cast<std::uint32_t>(GgufValueType::kF64)) {
    return in.corrupt(fmt::format("value type {} is not one of 0 to 12", id));
  }
  return static_cast<GgufValueType>(id);
}

Result<> skip_elements(ByteReader& in, GgufValueType type, std::uint64_t count, std::uint32_t depth);

struct ArrayHead {
  GgufValueType type;
  std::uint64_t count;
};
Result<ArrayHead> read_array_head(ByteReader& in) {
  OCTAVO_TRY(const auto type, read_value_type(in));
  const std::uint64_t scalar = gguf_scalar_bytes(type);
  const std::uint64_t least = scalar != 0 ? scalar : type == GgufValueType::kString ? kMinStringBytes : kMinArrayBytes;
  OCTAVO_TRY(const auto count, read_count(in, least, "array length"));
  return ArrayHead{type, count};
}

Result<> skip_elements(ByteReader& in, GgufValueType type, std::uint64_t count, std::uint32_t depth) {
  if (type == GgufValueType::kString) {
    for (std::uint64_t i = 0; i < count; ++i) OCTAVO_CHECK_OK(in.string("string"));
  } else if (type == GgufValueType::kArray) {
    if (depth == kMaxArrayDepth) return in.corrupt(fmt::format("arrays nest deeper than {}", kMaxArrayDepth));
    for (std::uint64_t i = 0; i < count; ++i) {
      OCTAVO_TRY(const auto inner, read_array_head(in));
      OCTAVO_CHECK_OK(skip_elements(in, inner.type, inner.count, depth + 1));
    }
  } else {
    OCTAVO_CHECK_OK(in.take(count * gguf_scalar_bytes(type), "value"));  // count was bounded: no overflow
  }
  return Ok{};
}

Result<GgufValue> read_value(ByteReader& in, std::span<const std::byte> file) {
  GgufValue value;
  OCTAVO_TRY(value.type, read_value_type(in));
  if (value.type == GgufValueType::kArray) {
    OCTAVO_TRY(const auto head, read_array_head(in));
    value = {.type = head.type, .is_array = true, .count = head.count};
  }
  const std::uint64_t start = in.offset();
  OCTAVO_CHECK_OK(skip_elements(in, value.type, value.count, 1));
  value.bytes = file.subspan(start, in.offset() - start);
  return value;
}

Result<std::map<std::string_view, GgufValue>> read_metadata(ByteReader& in, std::span<const std::byte> file,
                                                            std::uint64_t count) {
  std::map<std::string_view, GgufValue> metadata;
  for (std::uint64_t i = 0; i < count; ++i) {
    OCTAVO_TRY(const auto key, in.string("metadata key"));
    if (key.empty() || key.size() > kMaxKeyBytes) {
      return in.corrupt(fmt::format("a metadata key has {} bytes, not 1 to {}", key.size(), kMaxKeyBytes));
    }
    OCTAVO_TRY(const auto value, read_value(in, file));
    if (!metadata.emplace(key, value).second) return in.corrupt(fmt::format("metadata key {} occurs twice", key));
  }
  return metadata;
}

Result<std::uint32_t> find_alignment(const ByteReader& in, const std::map<std::string_view, GgufValue>& metadata) {
  const auto at = metadata.find(kAlignmentKey);
  if (at == metadata.end()) return kDefaultAlignment;
  const auto alignment = at->second.as<std::uint32_t>();
  if (!alignment || *alignment % 8 != 0 || !std::has_single_bit(*alignment)) {
    return in.corrupt(fmt::format("{} is not a power of two and a multiple of 8", kAlignmentKey));
  }
  return *alignment;
}

Error unread_type(const ByteReader& in, std::string_view tensor, std::uint32_t id) {
  const char* name = ggml_type_name(id);
  std::string supported;
  for (std::uint32_t known = 0; known < 64; ++known) {
    if (!tensor_type_from_id(known)) continue;
    supported += fmt::format("{}{}", supported.empty() ? "" : " ", ggml_type_name(known));
  }
  return {ErrorCode::kUnsupported,
          fmt::format("{}: at byte {}: tensor {} has type {} (id {}), which is not supported; supported are {}",
                      in.path(), in.offset(), tensor, name != nullptr ? name : "unknown", id, supported),
          std::string(tensor)};
}

struct TensorEntry {
  GgufTensor tensor;
  std::uint64_t offset = 0, bytes = 0;  // in the data section
};

Result<TensorEntry> read_tensor_entry(ByteReader& in, std::uint32_t alignment) {
  TensorEntry entry;
  GgufTensor& tensor = entry.tensor;
  OCTAVO_TRY(tensor.name, in.string("tensor name"));
  if (tensor.name.empty() || tensor.name.size() > kMaxNameBytes) {
    return in.corrupt(fmt::format("a tensor name has {} bytes, not 1 to {}", tensor.name.size(), kMaxNameBytes));
  }
  OCTAVO_TRY(const auto num_dims, in.number<std::uint32_t>("number of dimensions"));
  if (num_dims == 0 || num_dims > kMaxDims) {
    return in.corrupt(fmt::format("tensor {} has {} dimensions, not 1 to {}", tensor.name, num_dims, kMaxDims));
  }
  std::optional<std::uint64_t> elements = 1;
  for (std::uint32_t i = 0; i < num_dims; ++i) {
    OCTAVO_TRY(const auto dim, in.number<std::uint64_t>("dimension"));
    if (dim == 0) return in.corrupt(fmt::format("tensor {} has a dimension of 0", tensor.name));
    tensor.dims.push_back(dim);
    if (elements) elements = checked_multiply(*elements, dim);
  }
  OCTAVO_TRY(const auto type_id, in.number<std::uint32_t>("tensor type"));
  const auto type = tensor_type_from_id(type_id);
  if (!type) return unread_type(in, tensor.name, type_id);
  tensor.type = *type;
  const TypeTraits& traits = traits_of(*type);
  if (tensor.dims[0] % traits.block_size != 0) {
    return in.corrupt(fmt::format("tensor {} has rows of {} elements, not a multiple of {}'s block of {}", tensor.name,
                                  tensor.dims[0], traits.name, traits.block_size));
  }
  const auto bytes =
      elements ? checked_multiply(*elements / traits.block_size, traits.block_bytes) : std::optional<std::uint64_t>();
  if (!bytes) return in.corrupt(fmt::format("the size of tensor {} exceeds 64 bits", tensor.name));
  entry.bytes = *bytes;
  OCTAVO_TRY(entry.offset, in.number<std::uint64_t>("tensor offset"));
  if (entry.offset % alignment != 0) {
    return in.corrupt(
        fmt::format("offset {} of tensor {} is not a multiple of {}", entry.offset, tensor.name, alignment));
  }
  return entry;
}

/// Gives each tensor its bytes; `data` is the data section. No two may overlap.
Result<std::vector<GgufTensor>> place_tensors(const ByteReader& in, std::vector<TensorEntry> entries,
                                              std::span<const std::byte> data) {
  std::vector<GgufTensor> tensors;
  tensors.reserve(entries.size());
  for (TensorEntry& entry : entries) {
    if (entry.offset > data.size() || entry.bytes > data.size() - entry.offset) {
      return in.corrupt(
          fmt::format("tensor {} takes {} bytes at {} of the data section, which has {}: the file is cut "
                      "short or damaged",
                      entry.tensor.name, entry.bytes, entry.offset, data.size()));
    }
    entry.tensor.bytes = data.subspan(entry.offset, entry.bytes);
    tensors.push_back(entry.tensor);
  }
  std::sort(entries.begin(), entries.end(),
            [](const TensorEntry& a, const TensorEntry& b) { return a.offset < b.offset; });
  for (std::size_t i = 1; i < entries.size(); ++i) {
    if (entries[i].offset - entries[i - 1].offset < entries[i - 1].bytes) {
      return in.corrupt(fmt::format("tensors {} and {} overlap", entries[i - 1].tensor.name, entries[i].tensor.name));
    }
  }
  return tensors;
}

Result<std::uint32_t> read_version(ByteReader& in) {
  OCTAVO_TRY(const auto magic, in.number<std::uint32_t>("magic"));
  if (magic != kMagic) return in.corrupt("not a GGUF file: it does not begin with the letters GGUF");
  OCTAVO_TRY(const auto version, in.number<std::uint32_t>("version"));
  if (version == 2 || version == 3) return version;
  const std::uint32_t swapped = __builtin_bswap32(version);
  const bool big_endian = swapped >= 1 && swapped <= 3;
  return Error{ErrorCode::kUnsupported,
               big_endian
                   ? fmt::format("{}: this is a big-endian GGUF file; convert it to little-endian", in.path())
                   : fmt::format("{}: GGUF version {} is not supported, versions 2 and 3 are", in.path(), version),
               ""};
}

}  // namespace

Result<GgufTables> parse_gguf(const std::string& path, std::span<const std::byte> bytes) {
  ByteReader in(path, bytes);
  GgufTables tables;
  OCTAVO_TRY(tables.version, read_version(in));
  OCTAVO_TRY(const auto num_tensors, read_count(in, kMinTensorBytes, "tensor count"));
  OCTAVO_TRY(const auto num_metadata, read_count(in, kMinMetadataBytes, "metadata count"));
  OCTAVO_TRY(tables.metadata, read_metadata(in, bytes, num_metadata));
  OCTAVO_TRY(const auto alignment, find_alignment(in, tables.metadata));

  std::vector<TensorEntry> entries;
  for (std::uint64_t i = 0; i < num_tensors; ++i) {
    OCTAVO_TRY(TensorEntry entry, read_tensor_entry(in, alignment));
    entries.push_back(std::move(entry));
  }
  tables.header_bytes = in.offset();
  const std::uint64_t data_start = (in.offset() + alignment - 1) / alignment * alignment;
  const auto data = bytes.subspan(std::min<std::uint64_t>(data_start, bytes.size()));  // none in vocabulary-only files
  OCTAVO_TRY(tables.tensors, place_tensors(in, std::move(entries), data));
  return tables;
}

}  // namespace octavo
