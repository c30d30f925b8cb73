#!/usr/bin/env bash
# The AVX2 path on an emulated CPU that has nothing newer (Haswell): a stray instruction ends the program with SIGILL,
# and what comes out equals this machine's reference kernels.
# usage: tests/emulated_cpu.sh BUILD_FOLDER     needs qemu-user
set -euo pipefail
cd "$(dirname "$0")/.."
octavo=$1/src/cli/octavo kernels=$1/tests/unit/kernels/unit_kernels

emulated() { qemu-x86_64 -cpu Haswell "$@" 2> >(grep -v "TCG doesn't support" >&2); }

emulated "$octavo" --version
refused=$(OCTAVO_ISA=avx512 emulated "$octavo" generate --model tests/golden/tiny/gemma3 x 2>&1 || true)
[[ $refused == *"no AVX512F"* ]] || { echo "the emulated CPU should refuse AVX-512, but says: $refused" >&2; exit 1; }

# Not the tests that compare tables over subnormal f16 scales: QEMU's vcvtph2ps heeds DAZ, no CPU's does.
emulated "$kernels" --gtest_brief=1 \
  --gtest_filter='Gemm.HandCases:Gemm.LanesPastTheEnd*:Gemm.AnyPanelSplit*:Gemm.Q2_K*:Gemm.Mxfp4*:Gemm.Bf16*:GemmPack.*:Prepare*:RowOps.*:Logits.*:SelectKernels.*'

# A whole model, every byte of the answer. (The tiny llama's rows of 8 pairs end a page: QEMU 7.2 reads what vmaskmovps
# masks off, which no CPU does.)
answer() {
  echo '{"ids":[5,9,17,3,44,8,120,31,7,66,21],"max_tokens":12,"logprobs":3}' |
    "$@" "$octavo" generate --model tests/golden/tiny/gemma3 --threads 2 --prompts - --json
}
want=$(OCTAVO_ISA=ref answer env)
got=$(answer emulated)
[[ $got == "$want" ]] || { printf 'the answers differ:\n%s\n%s\n' "$want" "$got" >&2; exit 1; }
echo "the same bits on the emulated CPU"
