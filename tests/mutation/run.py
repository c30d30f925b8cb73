#!/usr/bin/env python3
"""Breaks the numerics contract on purpose, one law at a time, and demands that the invariance suite notices.

usage: run.py [--build FOLDER] [--only NAME]

The sources are copied to FOLDER, built once and shown to pass; then each mutant is applied there, built and run, and
must fail. A mutant whose text is no longer found is an error, too: it has to follow the code.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Mutant:
    def __init__(self, name, breaks, file, find, replace):
        self.name, self.breaks, self.file, self.find, self.replace = name, breaks, file, find, replace


MUTANTS = [
    Mutant(
        "two-accumulators", "one accumulator per output: a single row adds odd cells apart",
        "src/kernels/x86/gemm_int8_avx2.h",
        "      add_cell<Core>(PackedCell<Core>{cell}, group.scales(c), factors_of<f>(group.header, group.scales(c)), x, acc);\n",
        """      if (R == 1 && c % 2 == 1) {
        __m256 odd[R][2];
        odd[0][0] = odd[0][1] = _mm256_setzero_ps();
        add_cell<Core>(PackedCell<Core>{cell}, group.scales(c), factors_of<f>(group.header, group.scales(c)), x, odd);
        for (int h = 0; h < 2; ++h) acc[0][h] = _mm256_add_ps(acc[0][h], odd[0][h]);
      } else {
        add_cell<Core>(PackedCell<Core>{cell}, group.scales(c), factors_of<f>(group.header, group.scales(c)), x, acc);
      }
"""),
    Mutant(
        "split-by-threads", "splits are merged in order: with several threads, the last comes first",
        "src/kernels/x86/attention_entries.h",
        "task.state_begin} + split * task.states_per_split",
        "task.state_begin} + (task.num_splits - 1 - split) * task.states_per_split"),
    Mutant(
        "unrounded-prefill-keys", "prefill and decode store the same keys: a chunk cuts off what it should round",
        "src/kernels/x86/attention_entries.h",
        "const V16f key = load(k + from + d, lanes), value",
        "const V16f exact = load(k + from + d, lanes), key = row.num_tokens > 1 ? odd_bf16(exact) : exact, value"),
    Mutant(
        "window-shifted", "a window begins at p - W + 1: the vector kernels begin one later",
        "src/kernels/x86/attention_impl.h",
        "range.begin = first + 1 - spec.window;",
        "range.begin = first + 2 - spec.window;"),
    Mutant(
        "rng-without-choice", "choices of one request draw for themselves",
        "src/sample/rng.h",
        "philox({position.value, choice, draw, 0}",
        "philox({position.value, choice * 0, draw, 0}"),
]


def run(command, **options):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def copy_sources(to):
    files = run(["git", "ls-files", "CMakeLists.txt", "cmake", "include", "src", "tests"], cwd=ROOT).stdout.split("\n")
    for name in filter(None, files):
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != (ROOT / name).read_bytes():
            shutil.copyfile(ROOT / name, target)


def build(folder):
    return run(["cmake", "--build", str(folder / "build"), "--target", "unit_invariance"])


def suite(folder):
    """The suite on the small generated model: seconds, and every path."""
    return run([str(folder / "build/tests/unit/invariance/unit_invariance"), "--gtest_filter=*small*", "--gtest_brief=1"],
               timeout=600)


def fail(sentence, output=""):
    print(output[-4000:])
    print(f"mutation: {sentence}")
    sys.exit(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=str(ROOT / "build/mutation"))
    parser.add_argument("--only")
    options = parser.parse_args()
    for mutant in MUTANTS:
        if (times := (ROOT / mutant.file).read_text().count(mutant.find)) != 1:
            fail(f"{mutant.name}: its text stands {times} times in {mutant.file}, not once")
    folder = pathlib.Path(options.build).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    copy_sources(folder)
    os.environ["CCACHE_BASEDIR"] = str(folder)  # so that the copy finds what the real tree has compiled
    launcher = [f"-DCMAKE_CXX_COMPILER_LAUNCHER={shutil.which('ccache')}"] if shutil.which("ccache") else []
    configured = run(["cmake", "-S", str(folder), "-B", str(folder / "build"), "-G", "Ninja", "-DOCTAVO_WERROR=ON", *launcher])
    if configured.returncode != 0:
        fail("the copy does not configure", configured.stdout)
    if (built := build(folder)).returncode != 0:
        fail("the copy does not build", built.stdout)
    if (passed := suite(folder)).returncode != 0:
        fail("the suite fails on unbroken sources", passed.stdout)

    survivors = []
    for mutant in MUTANTS:
        if options.only not in (None, mutant.name):
            continue
        begin = time.monotonic()
        file = folder / mutant.file
        whole = file.read_text()
        file.write_text(whole.replace(mutant.find, mutant.replace))
        try:
            if (built := build(folder)).returncode != 0:
                fail(f"{mutant.name} does not build", built.stdout)
            caught = suite(folder).returncode != 0
        finally:
            file.write_text(whole)
        print(f"{'caught' if caught else 'SURVIVED':8} {mutant.name} ({time.monotonic() - begin:.0f} s): {mutant.breaks}",
              flush=True)
        if not caught:
            survivors.append(mutant.name)
    if survivors:
        fail(f"not noticed by the invariance suite: {', '.join(survivors)}")


if __name__ == "__main__":
    main()
