#!/usr/bin/env python3
"""Turn a byte-level BPE tokenizer.json into a GGUF file that holds only the vocabulary, for tests.

usage: bpe_json_to_gguf.py TOKENIZER.json PRE OUT.gguf [--bos ID]

PRE is the name for tokenizer.ggml.pre (llama-bpe, qwen2, ...). Tokens flagged special become control tokens, other
added tokens user-defined ones. With --bos the tokenizer adds that token before every text.
"""

import argparse
import json
import pathlib

from gguf import GGUFWriter, TokenType


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("json", type=pathlib.Path)
    ap.add_argument("pre")
    ap.add_argument("out", type=pathlib.Path)
    ap.add_argument("--bos", type=int)
    args = ap.parse_args()

    doc = json.loads(args.json.read_text())
    vocab, added = doc["model"]["vocab"], doc["added_tokens"]
    size = 1 + max([*vocab.values(), *(token["id"] for token in added)])
    texts = [f"[PAD{i}]" for i in range(size)]
    kinds = [TokenType.UNUSED] * size
    for text, i in vocab.items():
        texts[i], kinds[i] = text, TokenType.NORMAL
    for token in added:
        texts[token["id"]] = token["content"]
        kinds[token["id"]] = TokenType.CONTROL if token["special"] else TokenType.USER_DEFINED

    writer = GGUFWriter(args.out, "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(args.pre)
    writer.add_token_list(texts)
    writer.add_token_types(kinds)
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in doc["model"]["merges"]])
    writer.add_add_bos_token(args.bos is not None)
    if args.bos is not None:
        writer.add_bos_token_id(args.bos)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


if __name__ == "__main__":
    main()
