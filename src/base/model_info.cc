#include "octavo/model_info.h"

#include <cstddef>

namespace octavo {

const char* kv_type_name(KvType type) {
  switch (type) {
    case KvType::kF32: return "f32";
    case KvType::kF16: return "f16";
    case KvType::kBF16: return "bf16";
  }
  return "unknown";
}

Result<KvType> parse_kv_type(const std::string& name) {
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16}) {
    if (name == kv_type_name(type)) return type;
  }
  return Error{ErrorCode::kInvalidArgument, "KV type '" + name + "' is not known; f32, f16 and bf16 are", "kv_type"};
}

const char* numerics_name(Numerics numerics) {
  constexpr const char* kNames[] = {"int8", "bf16", "f32"};
  return kNames[static_cast<std::size_t>(numerics)];
}

}  // namespace octavo
