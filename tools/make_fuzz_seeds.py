#!/usr/bin/env python3
"""Writes the seeds of the loader's fuzz targets to tests/fuzz/corpus/{gguf,safetensors,hf_config}.

Usage: make_fuzz_seeds.py      needs nothing but Python
"""
import json
import pathlib
import struct

CORPUS = pathlib.Path(__file__).parents[1] / "tests/fuzz/corpus"
U8, U32, F32, BOOL, STRING, ARRAY = 0, 4, 6, 7, 8, 9


def string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def entry(key, kind, payload):
    return string(key) + struct.pack("<I", kind) + payload


def array(kind, count, payload):
    return struct.pack("<IQ", kind, count) + payload


def tensor(name, dims, kind, offset):
    return string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


def gguf(entries, tensors=(), data=b"", version=3):
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(entries)) + b"".join(entries) + b"".join(tensors)
    return head + bytes(-len(head) % 32) + data if tensors else head


def safetensors(header, data):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def main():
    scalars = [
        entry("general.architecture", STRING, string("llama")),
        entry("general.alignment", U32, struct.pack("<I", 32)),
        entry("a.f", F32, struct.pack("<f", 0.5)),
        entry("a.b", BOOL, b"\1"),
    ]
    arrays = [
        entry("a.strings", ARRAY, array(STRING, 2, string("one") + string(""))),
        entry("a.numbers", ARRAY, array(U32, 3, struct.pack("<3I", 1, 2, 3))),
        entry("a.nested", ARRAY, array(ARRAY, 1, array(U8, 2, b"\7\7"))),
    ]
    tensors = [tensor("x", [2, 3], 0, 0), tensor("y", [32], 2, 32), tensor("z", [256], 14, 64)]
    data = struct.pack("<6f", *range(6)) + bytes(8) + bytes(range(18)) + bytes(14) + bytes(210)
    rope = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32}  # fmt: skip
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4,
             "num_key_value_heads": 2, "max_position_embeddings": 256, "vocab_size": 288}  # fmt: skip
    by_layer = {"full_attention": {"rope_theta": 1e6, "rope_type": "linear", "factor": 8.0},
                "sliding_attention": {"rope_theta": 1e4, "rope_type": "default"}}  # fmt: skip
    types = ["sliding_attention", "sliding_attention", "full_attention"]
    seeds = {
        "gguf/vocabulary": gguf(scalars + arrays, version=2),
        "gguf/tensors": gguf(scalars, tensors, data),
        "safetensors/two": safetensors(
            {"__metadata__": {"format": "pt"},
             "a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
             "b": {"dtype": "BF16", "shape": [3], "data_offsets": [16, 22]}}, bytes(22)),
        "hf_config/llama": json.dumps({"model_type": "llama", "rope_scaling": rope, **sizes}).encode(),
        "hf_config/qwen2": json.dumps(
            {"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1,
             **sizes}).encode(),
        "hf_config/gemma3": json.dumps(
            {"model_type": "gemma3_text", "sliding_window": 8, "layer_types": types, "rope_parameters": by_layer,
             "query_pre_attn_scalar": 256, **sizes}).encode(),
    }  # fmt: skip
    for name, content in seeds.items():
        path = CORPUS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        print(f"{path}: {len(content)} bytes")


if __name__ == "__main__":
    main()
