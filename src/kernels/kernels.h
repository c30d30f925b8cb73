// The kernel table: pure functions on pointers and sizes. `ref` is the specification; the others equal it on bits.
//
// No allocation, threads or state; no knowledge of models, sequences or pools. The caller splits the work (rows,
// panels, tasks) and any split gives the same bits: one accumulator and one order per output, see docs/numerics.md.
// Pointers are 64-byte aligned at row 0 unless said otherwise; leading dimensions are in elements.
// Threads: any; the caller holds a FloatMode.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "tensor/packed.h"
#include "tensor/paged_kv.h"

namespace octavo {

/// A run of consecutive positions of one sequence: decode, chunked prefill and verify differ only in num_tokens.
struct KvRow {
  const BlockId* blocks;  // blocks[i] holds positions from (first_page + i) * block_tokens
  std::uint32_t first_page;
  std::uint32_t num_blocks;
  std::uint32_t first_pos;  // absolute position of the first token
  std::uint32_t num_tokens;
  std::uint32_t act_row;  // of its first token in q, k, v and out
};

/// Per layer kind: data, never a template.
struct AttnSpec {
  std::uint32_t num_heads;  // queries; num_heads / num_kv_heads share a KV head
  std::uint32_t window;     // 0: full; else keys in (p - window, p]
  float scale;              // multiplies q.k
  float soft_cap;           // 0: none; else cap * tanh(score / cap), before the mask
  const float* sinks;       // [num_heads] or nullptr
};

/// One unit of attention work, listed once per step and reused by all layers of the group. Splits are 256 tokens at
/// absolute positions. A direct task covers all splits of its tokens and writes `out`; a partial one writes states.
struct AttnTask {
  std::uint32_t row, kv_head;
  std::uint32_t token_begin, token_end;  // inside the row; at most kAttnTileTokens
  std::uint32_t split_begin, split_end;  // absolute split numbers; partial: exactly one split
  std::uint32_t state;                   // partial: its first state; one per token and query head of the KV head
  static constexpr std::uint32_t kDirect = ~0U;
};
inline constexpr std::uint32_t kAttnTileTokens = 16;
inline constexpr std::uint32_t kSplitTokens = 256;

/// A softmax part: max m, denominator l and weighted values o[head_dim], laid out as [m, l, pad.., o[head_dim]] with
/// the o part 64-byte aligned: stride in floats = 16 + head_dim rounded up to 16.
[[nodiscard]] constexpr std::uint32_t attn_state_floats(std::uint32_t head_dim) {
  return 16 + (head_dim + 15) / 16 * 16;
}

struct MergeTask {
  std::uint32_t act_row, kv_head;  // the token's row in `out`
  std::uint32_t num_splits;
  std::uint32_t state_begin, states_per_split;  // states of split s: state_begin + s * states_per_split + g
};

struct RopeTable {
  const float* cos_sin;    // [positions, rot_dims / 2, 2]
  std::uint32_t rot_dims;  // <= head_dim; pairs (i, i + rot_dims / 2); the rest passes through
};

enum class Activation : std::uint8_t { kSilu, kGeluTanh };

struct Candidate {
  TokenId id;
  float logit;
};
inline constexpr std::uint32_t kLogitChunk = 128;

/// Filled once at start; afterwards constant.
struct Kernels {
  const char* name;

  // Linear. x is [rows, ldx]; rows [row_begin, row_end) of it become rows of `out`.
  void (*prepare_rows)(const float* x, std::uint64_t ldx, ActRows& out, std::uint32_t row_begin, std::uint32_t row_end);
  /// y[row][16 * panel + lane] (+ bias) for all rows and a range of panels; lanes past n are not written.
  void (*gemm)(const ActRows& x, const PackedMatrix& w, const float* bias, float* y, std::uint64_t ldy,
               std::uint32_t panel_begin, std::uint32_t panel_end);
  /// The de-quantised row `row` of a packed matrix: token embeddings share the head's panels.
  void (*unpack_row)(const PackedMatrix& w, std::uint32_t row, float* out);

  // Row operations on one row.
  void (*rms_norm)(const float* x, const float* gain, float eps, std::uint32_t n, float* out);  // out may be x
  void (*add)(float* x, const float* y, std::uint32_t n);                                       // x += y
  void (*scale)(float* x, float factor, std::uint32_t n);
  void (*gated)(Activation act, const float* gate, const float* up, std::uint32_t n, float* out);  // act(gate) * up
  void (*soft_cap)(float* x, float cap, std::uint32_t n);
  void (*rope)(float* heads, std::uint32_t num_heads, std::uint32_t head_dim, const RopeTable& table,
               std::uint32_t pos);

  // Attention. q [rows, num_heads, head_dim], k and v [rows, num_kv_heads, head_dim], out like q, apart from it.
  void (*store_kv)(const PagedKv& kv, const KvRow& row, std::uint32_t token, const float* k, const float* v);
  void (*attend)(const PagedKv& kv, const AttnSpec& spec, const KvRow& row, const AttnTask& task, const float* q,
                 float* out, float* states, std::byte* scratch);
  void (*merge)(const AttnSpec& spec, std::uint32_t num_kv_heads, std::uint32_t head_dim, const MergeTask& task,
                const float* states, float* out);

  // Logits.
  float (*log_sum_exp)(const float* logits, std::uint32_t n);  // not finite if a logit is NaN or +inf
  /// The largest logit, of equals the lowest id, and that of every kLogitChunk: chunk_max [ceil(n / kLogitChunk)].
  /// If a logit is NaN or +inf the returned one is NaN.
  Candidate (*largest)(const float* logits, std::uint32_t n, float* chunk_max);
  /// Those of ids [begin, end) that are not below `least`, ascending ids. Returns how many; logits are numbers.
  std::uint32_t (*not_below)(const float* logits, std::uint32_t begin, std::uint32_t end, float least, Candidate* out);
  /// The k largest, descending, then by lowest id; NaN left out. Returns how many.
  std::uint32_t (*top)(const float* logits, std::uint32_t n, std::uint32_t k, Candidate* out);
  /// out[i] = exp(x[i] * factor - max), returned: their sum in the contract's 16-lane order. `out` may be x or nullptr.
  float (*exp_sum)(const float* x, float factor, float max, std::uint32_t n, float* out);
};

/// Bytes of `attend`'s scratch, one per thread, 64-byte aligned.
[[nodiscard]] std::size_t attend_scratch_bytes(std::uint32_t heads_per_kv_head, std::uint32_t head_dim);

/// Storage for ActRows: carve `buffer` (act_rows_bytes long, 64-byte aligned) into the fields of `kind`.
[[nodiscard]] std::size_t act_rows_bytes(ActKind kind, std::uint32_t m, std::uint32_t k);
[[nodiscard]] ActRows make_act_rows(ActKind kind, std::uint32_t m, std::uint32_t k, std::byte* buffer);
[[nodiscard]] ActKind act_kind_of(WeightFormat format);

/// sin and cos of pos * inv_freq[i] by own polynomials: out [positions, half, 2] as RopeTable wants it.
/// Scalar, not in the table: it runs once at load.
void fill_rope_table(const float* inv_freq, std::uint32_t half, std::uint32_t positions, float* out);

/// out[i] = 1 / base^(2i / rot_dims), i < rot_dims / 2, by our own power: the frequencies before any rope scaling.
void fill_inv_freq(float base, std::uint32_t rot_dims, float* out);

}  // namespace octavo
