// Every kernel entry, once per table. `ref` is scalar and readable: the specification.
#pragma once
#include "kernels/kernels.h"

// Linear entries live in <isa>/gemm*.cc, row operations in rowops.cc, attention in attention.cc, logits in logits.cc.
#define OCTAVO_DECLARE_KERNELS(isa)                                                                                    \
  namespace octavo::isa {                                                                                              \
  void prepare_rows(const float* x, std::uint64_t ldx, ActRows& out, std::uint32_t row_begin, std::uint32_t row_end);  \
  void gemm(const ActRows& x, const PackedMatrix& w, const float* bias, float* y, std::uint64_t ldy,                   \
            std::uint32_t panel_begin, std::uint32_t panel_end);                                                       \
  void rms_norm(const float* x, const float* gain, float eps, std::uint32_t n, float* out);                            \
  void add(float* x, const float* y, std::uint32_t n);                                                                 \
  void scale(float* x, float factor, std::uint32_t n);                                                                 \
  void gated(Activation act, const float* gate, const float* up, std::uint32_t n, float* out);                         \
  void soft_cap(float* x, float cap, std::uint32_t n);                                                                 \
  void rope(float* heads, std::uint32_t num_heads, std::uint32_t head_dim, const RopeTable& table, std::uint32_t pos); \
  void store_kv(const PagedKv& kv, const KvRow& row, std::uint32_t token, const float* k, const float* v);             \
  void attend(const PagedKv& kv, const AttnSpec& spec, const KvRow& row, const AttnTask& task, const float* q,         \
              float* out, float* states, std::byte* scratch);                                                          \
  void merge(const AttnSpec& spec, std::uint32_t num_kv_heads, std::uint32_t head_dim, const MergeTask& task,          \
             const float* states, float* out);                                                                         \
  float log_sum_exp(const float* logits, std::uint32_t n);                                                             \
  Candidate largest(const float* logits, std::uint32_t n, float* chunk_max);                                           \
  std::uint32_t not_below(const float* logits, std::uint32_t begin, std::uint32_t end, float least, Candidate* out);   \
  std::uint32_t top(const float* logits, std::uint32_t n, std::uint32_t k, Candidate* out);                            \
  float exp_sum(const float* x, float factor, float max, std::uint32_t n, float* out);                                 \
  }

OCTAVO_DECLARE_KERNELS(ref)
OCTAVO_DECLARE_KERNELS(avx2)
OCTAVO_DECLARE_KERNELS(avx512)

#undef OCTAVO_DECLARE_KERNELS

namespace octavo::ref {
/// In every table: one row a token is read at the speed of memory by scalar code too.
void unpack_row(const PackedMatrix& w, std::uint32_t row, float* out);
}  // namespace octavo::ref

namespace octavo::avxvnni {
/// avx2::gemm with block formats by vpdpbusd.
void gemm(const ActRows& x, const PackedMatrix& w, const float* bias, float* y, std::uint64_t ldy,
          std::uint32_t panel_begin, std::uint32_t panel_end);
}  // namespace octavo::avxvnni

namespace octavo::amx {
/// avx512::gemm with full tiles of rows by AMX, and attention over BF16 by it.
void gemm(const ActRows& x, const PackedMatrix& w, const float* bias, float* y, std::uint64_t ldy,
          std::uint32_t panel_begin, std::uint32_t panel_end);
void attend(const PagedKv& kv, const AttnSpec& spec, const KvRow& row, const AttnTask& task, const float* q, float* out,
            float* states, std::byte* scratch);
}  // namespace octavo::amx

namespace octavo::avx512bf16 {
/// avx512::gemm with BF16 weights by vdpbf16ps.
void gemm(const ActRows& x, const PackedMatrix& w, const float* bias, float* y, std::uint64_t ldy,
          std::uint32_t panel_begin, std::uint32_t panel_end);
}  // namespace octavo::avx512bf16
