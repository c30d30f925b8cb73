#include "load/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "load/byte_reader.h"
#include "load/json_fields.h"

namespace octavo {
namespace {

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
constexpr std::size_t kMaxDims = 8;

struct Dtype {
  std::string_view name;
  std::uint64_t bytes;
  std::optional<TensorType> type;
};
constexpr auto kDtypes = std::to_array<Dtype>({
    {"F32", 4, TensorType::kF32},
    {"F16", 2, TensorType::kF16},
    {"BF16", 2, TensorType::kBF16},
    {"F64", 8, std::nullopt},
    {"F8_E4M3", 1, std::nullopt},
    {"F8_E5M2", 1, std::nullopt},
    {"I8", 1, std::nullopt},
    {"U8", 1, std::nullopt},
    {"BOOL", 1, std::nullopt},
    {"I16", 2, std::nullopt},
    {"U16", 2, std::nullopt},
    {"I32", 4, std::nullopt},
    {"U32", 4, std::nullopt},
    {"I64", 8, std::nullopt},
    {"U64", 8, std::nullopt},
});

/// The numbers of a JSON array; nullopt if it is not one of unsigned integers.
std::optional<std::vector<std::uint64_t>> unsigned_numbers(const nlohmann::json* array) {
  if (array == nullptr || !array->is_array()) return std::nullopt;
  std::vector<std::uint64_t> numbers;
  for (const nlohmann::json& number : *array) {
    if (!number.is_number_unsigned()) return std::nullopt;
    numbers.push_back(number.get<std::uint64_t>());
  }
  return numbers;
}

struct Entry {
  SafeTensor tensor;
  std::uint64_t begin = 0, end = 0;  // in the data section
};

class HeaderReader {
 public:
  HeaderReader(const ByteReader& in, std::span<const std::byte> data) : in_(in), data_(data) {}

  [[nodiscard]] Result<Entry> read(const std::string& name, const nlohmann::json& object) const {
    if (!object.is_object()) return corrupt(name, "is not described by an object");
    const JsonFields fields(in_.path(), object);
    OCTAVO_TRY(const std::string dtype_name, fields.require<std::string>("dtype"));
    const auto dtype =
        std::find_if(kDtypes.begin(), kDtypes.end(), [&](const Dtype& known) { return known.name == dtype_name; });
    if (dtype == kDtypes.end()) return corrupt(name, fmt::format("has the unknown dtype '{}'", dtype_name));
    const auto shape = unsigned_numbers(fields.find("shape"));
    const auto place = unsigned_numbers(fields.find("data_offsets"));
    if (!shape || shape->size() > kMaxDims) return corrupt(name, "has no shape of at most 8 sizes");
    if (!place || place->size() != 2) return corrupt(name, "has no pair of data_offsets");
    if ((*place)[0] > (*place)[1] || (*place)[1] > data_.size()) {
      return corrupt(name, fmt::format("lies at {} to {} of the {} data bytes: the file is cut short or damaged",
                                       (*place)[0], (*place)[1], data_.size()));
    }
    Entry entry{.tensor = {.name = name, .dtype = dtype_name, .type = dtype->type, .shape = *shape},
                .begin = (*place)[0],
                .end = (*place)[1]};
    if (!fills(entry, dtype->bytes)) return corrupt(name, "has a shape that does not fill its data_offsets");
    entry.tensor.bytes = data_.subspan(entry.begin, entry.end - entry.begin);
    return entry;
  }

  /// From end to end of the data section, without overlaps or holes.
  [[nodiscard]] Result<> check_places(std::vector<Entry> entries) const {
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
    std::uint64_t at = 0;
    for (const Entry& entry : entries) {
      if (entry.begin != at) {
        return corrupt(entry.tensor.name, fmt::format("begins at {}, the one before it ends at {}", entry.begin, at));
      }
      at = entry.end;
    }
    if (at == data_.size()) return Ok{};
    return in_.corrupt(fmt::format("the tensors end at {} of {} data bytes", at, data_.size()));
  }

 private:
  [[nodiscard]] Error corrupt(const std::string& name, std::string_view why) const {
    return in_.corrupt(fmt::format("tensor {} {}", name, why));
  }
  static bool fills(const Entry& entry, std::uint64_t element_bytes) {
    std::uint64_t bytes = element_bytes;
    for (const std::uint64_t size : entry.tensor.shape) {
      if (size != 0 && bytes > std::numeric_limits<std::uint64_t>::max() / size) return false;
      bytes *= size;
    }
    return bytes == entry.end - entry.begin;
  }

  const ByteReader& in_;
  std::span<const std::byte> data_;
};

}  // namespace

Result<SafeTensors> parse_safetensors(const std::string& path, std::span<const std::byte> file) {
  ByteReader in(path, file);
  OCTAVO_TRY(const auto length, in.number<std::uint64_t>("header length"));
  if (length > kMaxHeaderBytes) {
    return in.corrupt(fmt::format("the header has {} bytes, the limit is {}", length, kMaxHeaderBytes));
  }
  OCTAVO_TRY(const auto header, in.take(length, "header"));
  const std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
  OCTAVO_TRY(const nlohmann::json json, parse_json_object(path, text));

  SafeTensors out;
  out.header_bytes = in.offset();
  const HeaderReader reader(in, file.subspan(in.offset()));
  std::vector<Entry> entries;
  for (const auto& [name, object] : json.items()) {
    if (name == "__metadata__") continue;
    OCTAVO_TRY(Entry entry, reader.read(name, object));
    entries.push_back(std::move(entry));
  }
  OCTAVO_CHECK_OK(reader.check_places(entries));
  for (Entry& entry : entries) out.tensors.push_back(std::move(entry.tensor));
  return out;
}

}  // namespace octavo
