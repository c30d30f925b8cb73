"""A machine profile for tests: octavo plan tells time by it."""

import json


def some_profile(path):
    """Writes the profile of a machine that nobody measured."""
    path.write_text(json.dumps({
        "octavo_machine_profile": 1, "cpu": "a CPU", "isa": "any", "threads": 2, "measured": "2026-01-01 00:00 UTC",
        "read_gbytes": 20.0, "empty_region_us": 0.1, "joined_region_us": 0.5, "sample_ns": 1e4,
        "gemm": [{"format": f, "rows": [1, 64], "ns_per_weight": [0.05, 0.6]}
                 for f in ("Q4_1", "Q8_0", "Q4_0", "BF16", "F16", "F32")],
        "attention": [{"kv_type": kv, "head_dim": 64, "group": 4, "single_key_ns": 20.0, "chunk_key_ns": 5.0}
                      for kv in ("f32", "f16", "bf16")],
        "models": []}))
    return path
