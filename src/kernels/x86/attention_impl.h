// Attention on sixteen lanes: a lane is a token while scoring, a dimension while weighting values. The order of every
// operation is that of ref/attention.cc; here only the loops are turned round.
//
// A task's rows are its (token, query head) pairs. For each split and each tile of kQueryTileRows rows: score all cells
// the tile can see, turn scores into weights row by row, weight the values. Inside, blocks of R rows share each load of
// K and V. A cell that only some rows of the tile see gets weight +0 in the others.
#pragma once
#include "kernels/attention_tile.h"
#include "kernels/entries.h"
#include "kernels/ref/math.h"
#include "kernels/x86/for_lanes.h"
#include "kernels/x86/math16.h"

// Loops over register arrays must vanish.
#ifdef __clang__
#define OCTAVO_UNROLL _Pragma("unroll")
#else
#define OCTAVO_UNROLL _Pragma("GCC unroll 16")
#endif

namespace octavo::OCTAVO_ISA {
namespace {

std::uint32_t smaller(std::uint32_t a, std::uint32_t b) { return a < b ? a : b; }
std::uint32_t state_floats(std::uint32_t head_dim) { return 16 + (head_dim + 15) / 16 * 16; }

// --- Row blocks -----------------------------------------------------------------------------------------------------

template <std::uint32_t n>
struct Rows {
  static constexpr std::uint32_t value = n;
};

template <std::uint32_t max, class Body>
inline void with_rows(std::uint32_t rows, const Body& body) {
  if constexpr (max > 1) {
    if (rows < max) return with_rows<max - 1>(rows, body);
  }
  body(Rows<max>{});
}

/// Calls body(first row, Rows<n>) for blocks of about equal size, at most `max` rows each.
template <std::uint32_t max, class Body>
inline void for_row_blocks(std::uint32_t rows, const Body& body) {
  for (std::uint32_t row = 0; row < rows;) {
    const std::uint32_t left = rows - row, blocks = (left + max - 1) / max, n = (left + blocks - 1) / blocks;
    with_rows<max>(n, [&](auto block) { body(row, block); });
    row += n;
  }
}

// --- Cells ----------------------------------------------------------------------------------------------------------

/// A K or V cell, and one of equal size that is wanted soon: each load of the one fetches the same line of the other.
/// Blocks lie anywhere, so nobody but the block table knows what comes next.
struct Cell {
  const std::byte* at;
  const std::byte* next;
  [[nodiscard]] Cell skip(std::uint64_t bytes) const { return {at + bytes, next + bytes}; }
  void fetch(std::uint64_t offset) const { prefetch(next + offset); }
};

// --- The numbers of a KV type ---------------------------------------------------------------------------------------

const float* floats(const std::byte* p) { return reinterpret_cast<const float*>(p); }

struct F32Numbers {
  static constexpr std::uint32_t kBytes = 4;
  template <class L>
  static inline V16f at(const std::byte* p, L lanes) {
    return load(floats(p), lanes);
  }
};

struct F16Numbers {
  static constexpr std::uint32_t kBytes = 2;
  static inline V16f at(const std::byte* p, AllLanes) { return load_f16(p); }
  static inline V16f at(const std::byte* p, FirstLanes lanes) {
    alignas(64) std::byte copy[32] = {};
    __builtin_memcpy(copy, p, 2 * lanes.count);
    return load_f16(copy);
  }
};

// --- Scores: q . k of a cell's 16 tokens for R rows -----------------------------------------------------------------

/// Where the factor of term i of row r lies: p[i * kTerm + r * kRow]. Constants, so that loads need no arithmetic.
struct QueryFactors {
  static constexpr std::uint32_t kRow = 1, kTerm = kQueryTileRows;
};
struct WeightFactors {
  static constexpr std::uint32_t kRow = kSplitTokens, kTerm = 1;
};

/// sums[r] = the chain over every second of n terms, from `parity` on, of p's factors and pairs(i / 2). Even and odd
/// terms take turns, because twelve such sums fill AVX2's registers.
template <class Factors, std::uint32_t parity, std::uint32_t R, class LoadPairs>
inline void chain_bf16(std::uint32_t n, const float* p, const LoadPairs& pairs, V16f* sums) {
  V16f chain[R];
  OCTAVO_UNROLL
  for (std::uint32_t r = 0; r < R; ++r) chain[r] = zero();
  p += parity * Factors::kTerm;
#pragma GCC unroll 8
  for (std::uint32_t i = 0; i < n / 2; ++i, p += 2 * Factors::kTerm) {
    const V16f x = parity == 0 ? even_bf16(pairs(i)) : odd_bf16(pairs(i));
    OCTAVO_UNROLL
    for (std::uint32_t r = 0; r < R; ++r) chain[r] = fma(broadcast(p[r * Factors::kRow]), x, chain[r]);
  }
  OCTAVO_UNROLL
  for (std::uint32_t r = 0; r < R; ++r) sums[r] = chain[r];
}

/// Tile-32 order. scores[r][16] = c, which gets c = c + (even + odd) per 32 dimensions.
template <std::uint32_t R>
inline void score_bf16(const Cell& cell, const float* q, std::uint32_t head_dim, float* scores) {
  for (std::uint32_t begin = 0; begin < head_dim; begin += 32) {
    const std::uint32_t n = smaller(32, head_dim - begin);
    const Cell from = cell.skip(begin / 2 * kCellTokens * 4);
    const auto pairs = [&](std::uint64_t i) { return load(floats(from.at) + i * kCellTokens); };
    V16f even[R], odd[R];
    chain_bf16<QueryFactors, 0, R>(
        n, q + begin * kQueryTileRows, [&](std::uint64_t i) { return from.fetch(i * kCellTokens * 4), pairs(i); },
        even);
    chain_bf16<QueryFactors, 1, R>(n, q + begin * kQueryTileRows, pairs, odd);
    OCTAVO_UNROLL
    for (std::uint32_t r = 0; r < R; ++r) {
      float* to = scores + r * kSplitTokens;
      store(to, add(begin == 0 ? zero() : load(to), add(even[r], odd[r])));
    }
  }
}

template <class Numbers, std::uint32_t R>
inline void score_chain(const Cell& cell, const float* q, std::uint32_t head_dim, float* scores) {
  V16f sums[R];
  OCTAVO_UNROLL
  for (std::uint32_t r = 0; r < R; ++r) sums[r] = zero();
  for (std::uint32_t d = 0; d < head_dim; ++d) {
    const std::uint32_t offset = d * kCellTokens * Numbers::kBytes;
    cell.fetch(offset);
    const V16f k = Numbers::at(cell.at + offset, AllLanes{});
    OCTAVO_UNROLL
    for (std::uint32_t r = 0; r < R; ++r) sums[r] = fma(broadcast(q[d * kQueryTileRows + r]), k, sums[r]);
  }
  OCTAVO_UNROLL
  for (std::uint32_t r = 0; r < R; ++r) store(scores + r * kSplitTokens, sums[r]);
}

// --- Values: o += p v of a cell's 16 tokens for R rows --------------------------------------------------------------

template <std::uint32_t R>
inline void weight_bf16(const Cell& cell, const float* p, std::uint32_t head_dim, float* o, std::uint32_t stride) {
  for_lanes(head_dim, [=](std::uint32_t d, auto lanes) {
    const Cell from = cell.skip(d * 4);
    const std::uint64_t line = head_dim;
    const auto pairs = [=](std::uint64_t i) { return load(floats(from.at) + i * line, lanes); };
    V16f even[R], odd[R];
    chain_bf16<WeightFactors, 0, R>(
        kCellTokens, p, [=](std::uint64_t i) { return from.fetch(i * line * 4), pairs(i); }, even);
    chain_bf16<WeightFactors, 1, R>(kCellTokens, p, pairs, odd);
    float* to = o + d;
    OCTAVO_UNROLL
    for (std::uint32_t r = 0; r < R; ++r, to += stride) store(to, add(load(to), add(even[r], odd[r])));
  });
}

template <class Numbers, std::uint32_t R>
inline void weight_chain(const Cell& cell, const float* p, std::uint32_t head_dim, float* o, std::uint32_t stride) {
  for_lanes(head_dim, [&](std::uint32_t d, auto lanes) {
    V16f sums[R];
    OCTAVO_UNROLL
    for (std::uint32_t r = 0; r < R; ++r) sums[r] = load(o + r * stride + d);
    for (std::uint32_t t = 0; t < kCellTokens; ++t) {
      const std::uint32_t offset = (t * head_dim + d) * Numbers::kBytes;
      cell.fetch(offset);
      const V16f v = Numbers::at(cell.at + offset, lanes);
      OCTAVO_UNROLL
      for (std::uint32_t r = 0; r < R; ++r) sums[r] = fma(broadcast(p[r * kSplitTokens + t]), v, sums[r]);
    }
    OCTAVO_UNROLL
    for (std::uint32_t r = 0; r < R; ++r) store(o + r * stride + d, sums[r]);
  });
}

/// One tile's rows: q [head_dim][kQueryTileRows], scores (then weights) [rows][256], o [rows][stride].
struct Tile {
  const float* q;
  float* scores;
  float* o;
  std::uint32_t rows, head_dim, stride;
};

/// `cell` is the index inside the split.
void score_cell(KvType type, const Tile& tile, const Cell& k, std::uint32_t cell) {
  float* scores = tile.scores + cell * kCellTokens;
  const auto q = [&](std::uint32_t row) { return tile.q + row; };
  const auto to = [&](std::uint32_t row) { return scores + row * kSplitTokens; };
  const std::uint32_t n = tile.head_dim;
  switch (type) {
    case KvType::kBF16:
      return for_row_blocks<kRegisterRows>(
          tile.rows, [&](std::uint32_t row, auto block) { score_bf16<block.value>(k, q(row), n, to(row)); });
    case KvType::kF16:
      return for_row_blocks<kRegisterRows>(tile.rows, [&](std::uint32_t row, auto block) {
        score_chain<F16Numbers, block.value>(k, q(row), n, to(row));
      });
    case KvType::kF32:
      return for_row_blocks<kRegisterRows>(tile.rows, [&](std::uint32_t row, auto block) {
        score_chain<F32Numbers, block.value>(k, q(row), n, to(row));
      });
  }
}

void weight_cell(KvType type, const Tile& tile, const Cell& v, std::uint32_t cell) {
  const float* weights = tile.scores + cell * kCellTokens;
  const auto p = [&](std::uint32_t row) { return weights + row * kSplitTokens; };
  const auto o = [&](std::uint32_t row) { return tile.o + row * tile.stride; };
  const std::uint32_t n = tile.head_dim, stride = tile.stride;
  switch (type) {
    case KvType::kBF16:
      return for_row_blocks<kRegisterRows>(
          tile.rows, [&](std::uint32_t row, auto block) { weight_bf16<block.value>(v, p(row), n, o(row), stride); });
    case KvType::kF16:
      return for_row_blocks<kRegisterRows>(tile.rows, [&](std::uint32_t row, auto block) {
        weight_chain<F16Numbers, block.value>(v, p(row), n, o(row), stride);
      });
    case KvType::kF32:
      return for_row_blocks<kRegisterRows>(tile.rows, [&](std::uint32_t row, auto block) {
        weight_chain<F32Numbers, block.value>(v, p(row), n, o(row), stride);
      });
  }
}

// --- Softmax of one row over one split ------------------------------------------------------------------------------

struct Range {
  std::uint32_t begin, end;  // absolute positions
  [[nodiscard]] bool empty() const { return begin >= end; }
};

/// The positions of a split that queries at first..last see together.
Range visible(const AttnSpec& spec, std::uint32_t first, std::uint32_t last, std::uint32_t split) {
  Range range{split * kSplitTokens, smaller((split + 1) * kSplitTokens, last + 1)};
  if (spec.window != 0 && first + 1 > spec.window && range.begin < first + 1 - spec.window) {
    range.begin = first + 1 - spec.window;
  }
  return range;
}

struct SoftmaxPart {
  float m, l;
};

/// round_to_bf16 of a weight: neither negative nor denormal, and a NaN comes from bf16 numbers, so its low half is
/// zero.
V16f round_weight(V16f weight) {
  const V16i all = bits(weight), odd = bit_and(shift_right<16>(all), broadcast_int(1));
  const V16i high_half = broadcast_int(static_cast<std::int32_t>(0xFFFF0000U));
  return from_bits(bit_and(add(all, add(odd, broadcast_int(0x7FFF))), high_half));
}

/// Scores of cells [cell_begin, cell_end) become weights, +0 outside `range`.
SoftmaxPart softmax_row(const AttnSpec& spec, KvType type, Range range, std::uint32_t cell_begin,
                        std::uint32_t cell_end, float* scores) {
  const auto from = static_cast<std::int32_t>(range.begin % kSplitTokens);
  const auto to = from + static_cast<std::int32_t>(range.end - range.begin);
  const auto first_lane = [](std::uint32_t cell) { return static_cast<std::int32_t>(cell * kCellTokens); };
  const auto whole = [&](std::int32_t lane) { return from <= lane && lane + 16 <= to; };

  const V16f minus_inf = broadcast(-__builtin_inff()), by = broadcast(spec.scale), cap = broadcast(spec.soft_cap);
  V16f best = minus_inf;
  for (std::uint32_t cell = cell_begin; cell < cell_end; ++cell) {
    const std::int32_t lane = first_lane(cell);
    V16f score = mul(load(scores + lane), by);
    if (spec.soft_cap != 0) score = soft_cap(score, cap);
    if (!whole(lane)) score = select(lanes_between(from - lane, to - lane), score, minus_inf);
    store(scores + lane, score);
    best = max(score, best);
  }

  const float m = largest(best);
  const V16f shift = broadcast(m);
  V16f total = zero();
  for (std::uint32_t cell = cell_begin; cell < cell_end; ++cell) {
    const std::int32_t lane = first_lane(cell);
    V16f weight = exp(sub(load(scores + lane), shift));
    if (!whole(lane)) weight = keep(lanes_between(from - lane, to - lane), weight);
    total = add(total, weight);
    store(scores + lane, type == KvType::kBF16 ? round_weight(weight) : weight);
  }
  return {m, sum(total)};
}

void clear_row(float* scores, std::uint32_t cell_begin, std::uint32_t cell_end) {
  for (std::uint32_t cell = cell_begin; cell < cell_end; ++cell) store(scores + cell * kCellTokens, zero());
}

// --- Joining splits -------------------------------------------------------------------------------------------------

/// sum, o = the sum so far joined with the next part. An empty sum (l = 0) takes it over as it is.
void join(SoftmaxPart& sum, float* o, const SoftmaxPart& next, const float* next_o, std::uint32_t head_dim) {
  if (sum.l == 0) {
    sum = next;
    for_lanes(head_dim, [&](std::uint32_t d, auto lanes) { store(o + d, load(next_o + d, lanes), lanes); });
    return;
  }
  const float m = next.m > sum.m ? next.m : sum.m;
  const float keep_sum = ref::exp(sum.m - m), take_next = ref::exp(next.m - m);
  sum.m = m;
  sum.l = fused(next.l, take_next, sum.l * keep_sum);
  const V16f keep16 = broadcast(keep_sum), take16 = broadcast(take_next);
  for_lanes(head_dim, [&](std::uint32_t d, auto lanes) {
    store(o + d, fma(load(next_o + d, lanes), take16, mul(load(o + d, lanes), keep16)), lanes);
  });
}

/// Joins the head's sink, a part with m = sink, l = 1, o = 0, and divides.
void finish(SoftmaxPart& sum, float* o, const AttnSpec& spec, std::uint32_t head, std::uint32_t head_dim) {
  float keep_sum = 1;
  if (spec.sinks != nullptr) {
    const float sink = spec.sinks[head], m = sink > sum.m ? sink : sum.m;
    keep_sum = ref::exp(sum.m - m);
    sum.l = fused(1.0F, ref::exp(sink - m), sum.l * keep_sum);
  }
  const V16f keep16 = broadcast(keep_sum), l = broadcast(sum.l);
  for_lanes(head_dim,
            [&](std::uint32_t d, auto lanes) { store(o + d, div(mul(load(o + d, lanes), keep16), l), lanes); });
}

// --- One KV head's pages --------------------------------------------------------------------------------------------

struct HeadKv {
  const PagedKv& kv;
  const KvRow& row;
  std::uint32_t kv_head;

  [[nodiscard]] std::byte* cell(std::uint32_t pos, std::uint64_t offset, std::uint64_t cell_bytes) const {
    const std::uint64_t id = row.blocks[pos / kv.block_tokens - row.first_page].value;
    return kv.base + id * kv.layer_stride_bytes + kv_head * kv.head_stride_bytes + offset +
           pos % kv.block_tokens / kCellTokens * cell_bytes;
  }
  [[nodiscard]] std::byte* k_cell(std::uint32_t pos) const { return cell(pos, 0, kv.k_cell_bytes); }
  [[nodiscard]] std::byte* v_cell(std::uint32_t pos) const { return cell(pos, kv.v_offset, kv.v_cell_bytes); }
};

/// The cells of one split that a tile can see, and which cell is wanted how soon: K of all, V of all, K of the next
/// split.
struct SplitCells {
  const HeadKv& head;
  std::uint32_t split, begin, end;  // [begin, end) inside the split
  std::uint32_t seen;               // positions that the tile sees in all: none behind is in the table

  [[nodiscard]] Cell k(std::uint32_t cell) const {
    const std::uint32_t next = cell + ahead();
    return {k_at(cell), next < end ? k_at(next) : v_at(next - end + begin)};
  }
  [[nodiscard]] Cell v(std::uint32_t cell) const {
    const std::uint32_t next = cell + ahead();
    return {v_at(cell), next < end ? v_at(next) : pos(next) < seen ? k_at(next) : v_at(cell)};
  }

 private:
  [[nodiscard]] std::uint32_t ahead() const { return smaller(2, end - begin); }
  [[nodiscard]] std::uint32_t pos(std::uint32_t cell) const { return split * kSplitTokens + cell * kCellTokens; }
  [[nodiscard]] const std::byte* k_at(std::uint32_t cell) const { return head.k_cell(pos(cell)); }
  [[nodiscard]] const std::byte* v_at(std::uint32_t cell) const { return head.v_cell(pos(cell)); }
};

/// Scores and values by the vector kernels above, cell by cell.
struct VectorCells {
  /// Row `row` of a tile's q [head_dim][kQueryTileRows], rounded as the scores want it.
  static void pack_query(KvType type, const float* q, std::uint32_t head_dim, float* tile, std::uint32_t row) {
    for_lanes(head_dim, [&](std::uint32_t d, auto lanes) {
      const V16f value = load(q + d, lanes);
      alignas(64) float numbers[16];
      store(numbers, type == KvType::kBF16 ? round_to_bf16(value) : value);
      const std::uint32_t count = smaller(16, head_dim - d);
      for (std::uint32_t i = 0; i < count; ++i) tile[(d + i) * kQueryTileRows + row] = numbers[i];
    });
  }
  static void score(KvType type, const Tile& tile, const SplitCells& cells) {
    for (std::uint32_t cell = cells.begin; cell < cells.end; ++cell) score_cell(type, tile, cells.k(cell), cell);
  }
  static void weight(KvType type, const Tile& tile, const SplitCells& cells) {
    for (std::uint32_t row = 0; row < tile.rows; ++row) {
      float* o = tile.o + row * tile.stride;
      for_lanes(tile.stride - 16, [&](std::uint32_t d, auto) { store(o + d, zero()); });
    }
    for (std::uint32_t cell = cells.begin; cell < cells.end; ++cell) weight_cell(type, tile, cells.v(cell), cell);
  }
};

/// One split for one tile: weights in tile.scores, values in tile.o; parts[row] has l = 0 for a row that sees nothing.
/// `tile_first` numbers the tile's first row within the task: token = row / group.
template <class Cells>
void attend_split(const HeadKv& head, const AttnSpec& spec, std::uint32_t split, std::uint32_t first_pos,
                  std::uint32_t group, std::uint32_t tile_first, const Tile& tile, SoftmaxPart* parts) {
  const KvType type = head.kv.type;
  const auto pos_of = [&](std::uint32_t row) { return first_pos + (tile_first + row) / group; };
  const Range seen = visible(spec, pos_of(0), pos_of(tile.rows - 1), split);
  for (std::uint32_t row = 0; row < tile.rows; ++row) parts[row] = {0, 0};
  if (seen.empty()) return;

  const std::uint32_t base = split * kSplitTokens;
  const SplitCells cells{head, split, (seen.begin - base) / kCellTokens,
                         (seen.end - base + kCellTokens - 1) / kCellTokens, pos_of(tile.rows - 1) + 1};
  Cells::score(type, tile, cells);
  for (std::uint32_t row = 0; row < tile.rows; ++row) {
    float* scores = tile.scores + row * kSplitTokens;
    const Range range = visible(spec, pos_of(row), pos_of(row), split);
    if (range.empty()) {
      clear_row(scores, cells.begin, cells.end);
    } else {
      parts[row] = softmax_row(spec, type, range, cells.begin, cells.end, scores);
    }
  }
  Cells::weight(type, tile, cells);
  for (std::uint32_t row = 0; row < tile.rows; ++row) {  // a zero becomes +0: masked tokens leave no trace in its sign
    float* o = tile.o + row * tile.stride;
    for_lanes(tile.stride - 16, [&](std::uint32_t d, auto) { store(o + d, add(load(o + d), zero())); });
  }
}

template <class Cells>
void attend_with(const PagedKv& kv, const AttnSpec& spec, const KvRow& row, const AttnTask& task, const float* q,
                 float* out, float* states, std::byte* scratch) {
  const std::uint32_t group = spec.num_heads / kv.num_kv_heads, head_dim = kv.head_dim;
  const std::uint32_t tokens = task.token_end - task.token_begin, rows = tokens * group;
  const std::uint32_t stride = state_floats(head_dim), first_pos = row.first_pos + task.token_begin;
  const std::uint64_t token_floats = std::uint64_t{spec.num_heads} * head_dim;
  const std::uint64_t at =
      (row.act_row + task.token_begin) * token_floats + std::uint64_t{task.kv_head} * group * head_dim;
  const bool direct = task.state == AttnTask::kDirect;

  float* scores = reinterpret_cast<float*>(scratch);
  float* tile_states = scores + kQueryTileRows * kSplitTokens;
  float* packed = tile_states + kQueryTileRows * stride;
  const auto tile_queries = [&](std::uint32_t r) {
    return packed + std::uint64_t{r / kQueryTileRows} * kQueryTileRows * head_dim;
  };
  auto* sums = reinterpret_cast<SoftmaxPart*>(tile_queries(rows + kQueryTileRows - 1));

  const HeadKv head{kv, row, task.kv_head};
  const auto at_of = [&](std::uint32_t r) { return at + r / group * token_floats + r % group * head_dim; };
  const auto out_of = [&](std::uint32_t r) { return out + at_of(r); };
  for (std::uint32_t r = 0; r < rows; ++r) {
    Cells::pack_query(kv.type, q + at_of(r), head_dim, tile_queries(r), r % kQueryTileRows);
    sums[r] = {0, 0};
  }

  for (std::uint32_t split = task.split_begin; split < task.split_end; ++split) {
    for (std::uint32_t first = 0; first < rows; first += kQueryTileRows) {
      float* state = direct ? tile_states : states + std::uint64_t{task.state + first} * stride;
      const Tile tile{tile_queries(first), scores, state + 16, smaller(kQueryTileRows, rows - first), head_dim, stride};
      SoftmaxPart parts[kQueryTileRows];
      attend_split<Cells>(head, spec, split, first_pos, group, first, tile, parts);
      for (std::uint32_t r = 0; r < tile.rows; ++r) {
        if (!direct) {
          state[r * stride] = parts[r].m;
          state[r * stride + 1] = parts[r].l;
        } else if (parts[r].l != 0) {
          join(sums[first + r], out_of(first + r), parts[r], tile.o + r * stride, head_dim);
        }
      }
    }
  }
  if (!direct) return;
  for (std::uint32_t r = 0; r < rows; ++r) finish(sums[r], out_of(r), spec, task.kv_head * group + r % group, head_dim);
}

}  // namespace
}  // namespace octavo::OCTAVO_ISA
