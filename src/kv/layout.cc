#include "kv/layout.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace octavo {
namespace {

/// Layers of equal shape.
struct Kind {
  KvLayerShape shape;
  KvLayout layout;
  std::uint64_t layers = 0;

  [[nodiscard]] std::uint64_t bytes() const { return layers * layout.layer_bytes; }
  [[nodiscard]] std::uint64_t group_layers(std::uint64_t page) const {
    return std::min(layers, page / layout.layer_bytes);
  }
  [[nodiscard]] std::uint64_t groups(std::uint64_t page) const {
    return (layers + group_layers(page) - 1) / group_layers(page);
  }
};

std::uint64_t padding_of(std::span<const Kind> kinds, std::uint64_t page) {
  std::uint64_t padding = 0;
  for (const Kind& k : kinds) padding += k.groups(page) * page - k.bytes();
  return padding;
}

/// The largest page that every kind can fill and that keeps padding within a sixth; failing that, the least padding.
std::uint64_t choose_page(std::span<const Kind> kinds) {
  std::uint64_t least = 0, most = ~std::uint64_t{0}, payload = 0;
  for (const Kind& k : kinds) {
    least = std::max(least, k.layout.layer_bytes), most = std::min(most, k.bytes()), payload += k.bytes();
  }
  most = std::max(most, least);
  std::uint64_t best = least;
  bool best_is_tight = false;
  for (const Kind& k : kinds) {
    for (std::uint64_t n = 1; n <= k.layers; ++n) {
      const std::uint64_t page = n * k.layout.layer_bytes;
      if (page < least || page > most) continue;
      const std::uint64_t padding = padding_of(kinds, page);
      const bool tight = padding * 6 <= payload;
      const bool better = tight ? !best_is_tight || page > best : !best_is_tight && padding < padding_of(kinds, best);
      if (better) best = page, best_is_tight = tight;
    }
  }
  return best;
}

}  // namespace

KvGroups plan_groups(std::span<const KvLayerShape> layers, KvType type, std::uint32_t block_tokens) {
  OCTAVO_CHECK(!layers.empty(), "a model has layers");
  OCTAVO_CHECK(block_tokens > 0 && block_tokens % kLayoutCellTokens == 0, "a block is a stack of 16-token cells");
  std::vector<Kind> kinds;
  const auto kind_of = [&](const KvLayerShape& shape) {
    return std::ranges::find_if(kinds, [&](const Kind& k) { return k.shape == shape; });
  };
  for (const KvLayerShape& shape : layers) {
    OCTAVO_CHECK(shape.num_kv_heads > 0 && shape.head_dim > 0, "a layer has KV heads and dimensions");
    auto kind = kind_of(shape);
    if (kind == kinds.end()) kind = kinds.insert(kind, {shape, make_kv_layout(shape, type, block_tokens), 0});
    ++kind->layers;
  }

  KvGroups out;
  out.type = type, out.block_tokens = block_tokens;
  out.shapes.assign(layers.begin(), layers.end());
  out.page_bytes = choose_page(kinds);
  std::vector<std::uint32_t> first_group;  // [kinds]
  for (const Kind& k : kinds) {
    first_group.push_back(static_cast<std::uint32_t>(out.groups.size()));
    out.groups.resize(out.groups.size() + k.groups(out.page_bytes), {k.shape.window, 0});
    out.num_slices = std::gcd(out.num_slices, static_cast<std::uint32_t>(k.group_layers(out.page_bytes)));
    out.payload_bytes_per_token += k.layers * k.layout.payload_bytes_per_token;
  }
  out.padding_bytes = padding_of(kinds, out.page_bytes);

  std::vector<std::uint32_t> seen(kinds.size());  // layers placed so far
  for (const KvLayerShape& shape : layers) {
    const auto kind = kind_of(shape);
    const auto k = static_cast<std::size_t>(kind - kinds.begin());
    const auto per_group = static_cast<std::uint32_t>(kind->group_layers(out.page_bytes));
    const std::uint32_t per_slice = per_group / out.num_slices;
    const std::uint32_t n = seen[k]++;
    KvPlacement p;
    p.group = {first_group[k] + n / per_group};
    p.arena = n % per_group;
    p.slice = p.arena / per_slice;
    p.offset = p.arena % per_slice * kind->layout.layer_bytes;
    p.layout = kind->layout;
    out.layers.push_back(p);
    ++out.groups[p.group.value].num_layers;
  }
  return out;
}

std::uint64_t blocks_held(const KvGroups& groups, std::uint64_t tokens, std::uint32_t max_step_tokens) {
  std::uint64_t blocks = 0;
  for (const KvGroup& g : groups.groups) blocks += pages_held(g.window, tokens, groups.block_tokens, max_step_tokens);
  return blocks;
}

}  // namespace octavo
