#!/usr/bin/env python3
"""Writes tests/golden/dequant/TYPE.bin: random blocks of each type and the values that the `gguf` package gives.

File: u32 number of elements, the blocks, then as many f32 (all little-endian).
Usage: make_dequant_goldens.py [OUT_FOLDER]      needs: gguf 0.19, numpy
"""
import pathlib
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

# Byte offsets of the f16 fields of a block (scale, then minimum).
F16_FIELDS = {
    "F16": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
    "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [], "F32": [], "BF16": [],
}  # fmt: skip
# Zeros, the smallest and largest subnormals, the smallest and largest normals, one, infinity.
EDGES = np.array([0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x7BFF, 0xFBFF, 0x3C00, 0x7C00], dtype=np.uint16)
PLAIN = {"F32": np.float32, "F16": np.float16}


def finite(rng, count):
    """Random f16 bits that are neither infinity nor NaN."""
    return (rng.integers(0, 0x7C00, count) | (rng.integers(0, 2, count) << 15)).astype(np.uint16)


def blocks_of(name, rng):
    block_size, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    count = {1: 64, 32: 32, 256: 14}[block_size]
    blocks = rng.integers(0, 256, (count, block_bytes), dtype=np.uint8)
    for field, offset in enumerate(F16_FIELDS[name]):
        edges = np.roll(EDGES, 2 * field)[: count - 4]
        scales = np.concatenate([edges, finite(rng, count - len(edges))])
        blocks[:, offset : offset + 2] = scales.view(np.uint8).reshape(count, 2)
    if name == "MXFP4":
        blocks[:6, 0] = [0, 1, 2, 127, 254, 255]
    if name in ("F32", "BF16"):  # no NaN
        blocks[:, -1] &= 0xBF
    return blocks


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1] / "tests/golden/dequant")
    out.mkdir(parents=True, exist_ok=True)
    for name in F16_FIELDS:
        blocks = blocks_of(name, np.random.default_rng(list(name.encode())))
        with np.errstate(all="ignore"):
            values = dequantize(blocks, GGMLQuantizationType[name]).astype(np.float32).reshape(-1)
        path = out / f"{name}.bin"
        path.write_bytes(np.uint32(values.size).tobytes() + blocks.tobytes() + values.tobytes())
        print(f"{path}: {values.size} elements, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
