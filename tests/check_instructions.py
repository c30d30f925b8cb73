#!/usr/bin/env python3
"""Every object of src/ holds only instructions that its file name allows, so that no CPU meets one it does not know.

usage: check_instructions.py BUILD_FOLDER

Kernels are chosen at run time, so a stray instruction is a crash on someone else's machine. Two ways lead there: flags
on the wrong file, and inline functions that several files share (the linker keeps one copy, maybe the one compiled for
AVX-512); so files with flags of their own must define no weak symbols at all.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Of objdump's text, where a tab stands before each instruction: "\tvpdpbusd %zmm1,%zmm2,%zmm3".
EVEX = r"%zmm|%[xy]mm(?:1[6-9]|2\d|3[01])\b|%k[0-7]\b|\{1to\d+\}|\t\{evex\}"
VNNI = r"\t(?:\{vex\} )?vpdp(?:busd|wssd)s?\b"
BF16 = r"\tvdpbf16ps\b|\tvcvtne2?ps2bf16"
TILES = r"\t(?:ldtilecfg|sttilecfg|tile\w+|tdp\w+)\b"
RARE = (r"\t(?:vperm(?:[it]2)?b|vpmultishiftqb|vpopcnt[bwdq]|vpsh[lr]dv?[wdq]|"
        r"(?:\{vex\} )?vpdp(?!busd|wssd)\w+)\b")
AVX2 = r"\tvp[^\n]*%ymm|\tv(?:extract|insert|broadcast)i128\b"
VEX = r"\t(?:\{vex\} )?v(?!err\b|erw\b)[a-z0-9]+ |%ymm"
SCALAR = (r"\t(?:popcnt|pshufb|pmaddubsw|ptest|pmulld|pblend\w+|blendv\w+|round[sp][sd]|crc32[bwlq]?|andn|bextr|bls[ri]|"
          r"blsmsk|bzhi|mulx|pdep|pext|rorx|s[ahr][lr]x)\b")

RULES = [  # the first pattern that a source path matches
    (r"_amx\.cc$", [RARE, BF16]),
    (r"_avx512bf16\.cc$", [RARE, TILES]),
    (r"_avx512\.cc$", [RARE, TILES, BF16]),
    (r"_avxvnni\.cc$", [RARE, TILES, BF16, EVEX]),
    (r"_avx2\.cc$", [RARE, TILES, BF16, EVEX, VNNI]),
    (r"^src/kernels/ref/", [RARE, TILES, BF16, EVEX, VNNI, AVX2]),  # FMA alone, which brings AVX
    (r"", [VEX, SCALAR]),  # any x86-64
]


def rule_of(source):
    return next(rule for rule in RULES if re.search(rule[0], source))


def stray(source, text):
    """The first line of a disassembly that an object of `source` must not hold."""
    found = re.search("|".join(rule_of(source)[1]), text)
    return found and text[text.rfind("\n", 0, found.start()) + 1 :].split("\n", 1)[0].strip()


def faults_of(source, path):
    def tool(*command):
        return subprocess.run([*command, str(path)], check=True, text=True, stdout=subprocess.PIPE).stdout

    faults = []
    if line := stray(source, tool("objdump", "-d", "--no-show-raw-insn")):
        faults.append(f"{source}: holds '{line}'")
    if rule_of(source) is not RULES[-1]:
        for line in tool("nm", "-C", "--defined-only").splitlines():
            kind, name = line.split(" ", 2)[1:]
            if kind in "Ww":
                faults.append(f"{source}: defines weak {name}, which other files may link")
    return faults


def objects(build):
    """Source of the repository -> object, as built now."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["file"])
        if ROOT / "src" in source.parents:
            words = shlex.split(entry["command"])
            yield str(source.relative_to(ROOT)), pathlib.Path(entry["directory"]) / words[words.index("-o") + 1]


def main():
    built = [(source, path) for source, path in objects(pathlib.Path(sys.argv[1]).resolve()) if path.exists()]
    kernels = sum(rule_of(source) is not RULES[-1] for source, _ in built)
    if kernels == 0:
        sys.exit(f"{sys.argv[1]}: no kernels are built there")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = [fault for found in pool.map(lambda entry: faults_of(*entry), built) for fault in found]
    print("\n".join(faults) or f"{kernels} objects with instruction sets of their own, {len(built) - kernels} plain: none astray")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
