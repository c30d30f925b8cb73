#include <fmt/format.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "base/cache_folder.h"
#include "base/topology.h"
#include "capacity/step_price.h"
#include "octavo/profile.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kVersion = 1;

/// Every field of every record, once: f(name, member). Reading and writing both go by it.
template <class R, class F>
void fields(R& r, F&& f) {
  using T = std::remove_const_t<R>;
  if constexpr (std::is_same_v<T, GemmCost>) {
    f("format", r.format), f("rows", r.rows), f("ns_per_weight", r.ns_per_weight);
  } else if constexpr (std::is_same_v<T, AttentionCost>) {
    f("kv_type", r.kv_type), f("head_dim", r.head_dim), f("group", r.group);
    f("single_key_ns", r.single_key_ns), f("chunk_key_ns", r.chunk_key_ns);
  } else if constexpr (std::is_same_v<T, StepCurve>) {
    f("tokens", r.tokens), f("ns", r.ns), f("logit_rows", r.logit_rows), f("logit_ns", r.logit_ns);
    f("single_key_ns", r.single_key_ns), f("chunk_key_ns", r.chunk_key_ns), f("row_ns", r.row_ns);
    f("step_ns", r.step_ns), f("copy_byte_ns", r.copy_byte_ns);
  } else if constexpr (std::is_same_v<T, ModelProfile>) {
    f("name", r.name), f("weights_bytes", r.weights_bytes), f("numerics", r.numerics), f("kv_type", r.kv_type);
    f("steps", r.steps);
  } else {
    static_assert(std::is_same_v<T, MachineProfile>);
    f("cpu", r.cpu), f("isa", r.isa), f("threads", r.threads), f("measured", r.measured);
    f("read_gbytes", r.read_gbytes), f("empty_region_us", r.empty_region_us);
    f("joined_region_us", r.joined_region_us), f("sample_ns", r.sample_ns);
    f("gemm", r.gemm), f("attention", r.attention), f("models", r.models);
  }
}

template <class T>
struct IsList : std::false_type {};
template <class T>
struct IsList<std::vector<T>> : std::true_type {};

template <class T>
Json to_json(const T& value) {
  if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (IsList<T>::value) {
    Json list = Json::array();
    for (const auto& one : value) list.push_back(to_json(one));
    return list;
  } else {
    Json object = Json::object();
    fields(value, [&](const char* name, const auto& field) { object[name] = to_json(field); });
    return object;
  }
}

/// Empty, or where and why.
template <class T>
std::string from_json(const Json& json, const std::string& where, T& out) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (!json.is_string()) return where + " is not a text";
    out = json.get<std::string>();
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!json.is_number()) return where + " is not a number";
    out = json.get<T>();
  } else if constexpr (std::is_integral_v<T>) {
    if (!json.is_number_unsigned() || json.get<std::uint64_t>() > std::numeric_limits<T>::max()) {
      return where + " is not a whole number from 0 to " + std::to_string(std::numeric_limits<T>::max());
    }
    out = json.get<T>();
  } else if constexpr (IsList<T>::value) {
    if (!json.is_array()) return where + " is not a list";
    for (std::size_t i = 0; i < json.size(); ++i) {
      std::string fault = from_json(json[i], fmt::format("{}[{}]", where, i), out.emplace_back());
      if (!fault.empty()) return fault;
    }
  } else {
    if (!json.is_object()) return where + " is not an object";
    std::string fault;
    fields(out, [&](const char* name, auto& field) {
      if (!fault.empty()) return;
      const std::string inner = where.empty() ? name : where + "." + name;
      const auto at = json.find(name);
      fault = at == json.end() ? inner + " is missing" : from_json(*at, inner, field);
    });
    return fault;
  }
  return "";
}

std::string fault_of(const MachineProfile& profile) {
  for (const GemmCost& gemm : profile.gemm) {
    const StepCurve as_curve{gemm.rows, gemm.ns_per_weight, {}, {}};
    if (const char* fault = fault_of(as_curve)) return fmt::format("gemm of {}: {}", gemm.format, fault);
  }
  for (const AttentionCost& a : profile.attention) {
    if (a.head_dim == 0 || a.group == 0) return "attention: head_dim and group must be above 0";
  }
  for (const ModelProfile& model : profile.models) {
    if (const char* fault = fault_of(model.steps)) return fmt::format("model {}: {}", model.name, fault);
  }
  return "";
}

}  // namespace

std::string profile_path(std::uint32_t threads) {
  const std::string folder = cache_folder("machines");
  if (folder.empty()) return "";
  std::string name = fmt::format("{}-{}-threads", cpu_name(), threads_or_cores(threads));
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
    if (!plain) c = '-';
  }
  return (fs::path(folder) / (name + ".json")).string();
}

Result<MachineProfile> load_profile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return Error{ErrorCode::kNotFound,
                 path + ": there is no machine profile yet: octavo probe --save measures one (about a minute)",
                 "machine"};
  }
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto corrupt = [&](const std::string& why) {
    return Error{ErrorCode::kCorrupt, fmt::format("{}: {}; measure it again: octavo probe --save", path, why),
                 "machine"};
  };
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return corrupt("this is no JSON object");
  if (json.value("octavo_machine_profile", Json(0)) != kVersion) {
    return corrupt(fmt::format("octavo_machine_profile must be {}", kVersion));
  }
  MachineProfile profile;
  if (const std::string fault = from_json(json, "", profile); !fault.empty()) return corrupt(fault);
  if (const std::string fault = fault_of(profile); !fault.empty()) return corrupt(fault);
  return profile;
}

Result<> save_profile(const std::string& path, const MachineProfile& profile) {
  std::error_code failed;
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty()) fs::create_directories(folder, failed);
  const std::string draft = fmt::format("{}.{}", path, ::getpid());
  Json json = to_json(profile);
  json["octavo_machine_profile"] = kVersion;
  std::ofstream file(draft, std::ios::binary);
  file << json.dump(1) << '\n';
  file.close();
  if (file) fs::rename(draft, path, failed);
  if (file && !failed) return Ok{};
  std::error_code ignored;
  fs::remove(draft, ignored);
  return Error{ErrorCode::kIo, path + ": the machine profile cannot be written: name another file with --output",
               "output"};
}

std::string profile_hash(const MachineProfile& profile) {
  const std::string text = to_json(profile).dump();
  return fmt::format("{:016x}", XXH64(text.data(), text.size(), 0));
}

}  // namespace octavo
