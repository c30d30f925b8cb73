"""The check finds what it looks for: one line of objdump's text for each of its rules."""
import pytest

from check_instructions import stray


@pytest.mark.parametrize("source, instruction", [
    ("src/kernels/x86/gemm_avx2.cc", "vpdpbusd %ymm1,%ymm2,%ymm3"),
    ("src/kernels/x86/gemm_avx2.cc", "{vex} vpdpbusd %ymm1,%ymm2,%ymm3"),
    ("src/kernels/x86/gemm_avx2.cc", "vmovdqu32 %zmm1,(%rax)"),
    ("src/kernels/x86/gemm_avx2.cc", "vmovdqu %ymm17,(%rax)"),
    ("src/kernels/x86/gemm_avx2.cc", "vpaddd %ymm1,%ymm1,%ymm1{%k1}"),
    ("src/kernels/x86/gemm_avx2.cc", "vpermb %ymm1,%ymm1,%ymm1"),
    ("src/kernels/x86/gemm_avxvnni.cc", "vpdpbusd %xmm1,%xmm2,%xmm19"),
    ("src/kernels/x86/gemm_avxvnni.cc", "{vex} vpdpbssd %ymm1,%ymm2,%ymm3"),
    ("src/kernels/x86/gemm_avx512.cc", "vdpbf16ps %zmm1,%zmm2,%zmm3"),
    ("src/kernels/x86/gemm_avx512bf16.cc", "tdpbusd %tmm0,%tmm1,%tmm2"),
    ("src/probe/x86/bursts_avx2.cc", "vpxorq %zmm1,%zmm1,%zmm1"),
    ("src/kernels/ref/math.cc", "vpaddd %ymm1,%ymm1,%ymm1"),
    ("src/kernels/pack.cc", "vmovdqu %xmm1,(%rax)"),
    ("src/engine/engine.cc", "vfmadd213ss %xmm1,%xmm2,%xmm3"),
    ("src/engine/engine.cc", "pshufb %xmm1,%xmm2"),
    ("src/text/bpe.cc", "popcnt %rax,%rdx"),
])
def test_a_stray_instruction_is_found(source, instruction):
    assert instruction in stray(source, f"  10:\tret\n  11:\t{instruction}\n  12:\tnop\n")


@pytest.mark.parametrize("source, instruction", [
    ("src/kernels/x86/gemm_avx2.cc", "vpermd %ymm1,%ymm2,%ymm3"),
    ("src/kernels/x86/gemm_avxvnni.cc", "{vex} vpdpbusd %ymm1,%ymm2,%ymm3"),
    ("src/kernels/x86/gemm_avx512.cc", "vpdpwssd %zmm1,%zmm2,%zmm31"),
    ("src/kernels/x86/gemm_avx512.cc", "vpermt2w %zmm1,%zmm2,%zmm3"),
    ("src/kernels/x86/gemm_avx512bf16.cc", "vdpbf16ps (%rax){1to16},%zmm2,%zmm3"),
    ("src/kernels/ref/gemm.cc", "vfmadd231ss %xmm1,%xmm2,%xmm3"),
    ("src/engine/engine.cc", "movdqu %xmm1,(%rax)"),
    ("src/engine/engine.cc", "call 12 <vpaddd_or_popcnt>"),
])
def test_its_own_instructions_are_let_pass(source, instruction):
    assert not stray(source, f"  11:\t{instruction}\n")
