#!/usr/bin/env python3
"""Octavo beside llama.cpp, ik_llama.cpp or another of their kin, in alternation on the same files, as ratios.

  bench/compare_llama.py --octavo BIN --peer NAME=LLAMA_BENCH... [--batched NAME=LLAMA_BATCHED_BENCH...] FILE.gguf...

Prefill, decode of one stream at each depth and, of peers with a batched bench, decode of many streams. Each round runs
every program on every core; who is first changes with the round. A peer runs with flash attention on and off, and with
-rtr 0 and 1 where it knows that (run-time repacking), and its best variant counts. Best is the fastest run of all
rounds, the least disturbed one; median is that of the rounds' medians. What a peer can do is read from its --help.
"""

import argparse
import itertools
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

from serving_launch import machine, source_commit

# libgomp leaves threads free to wander; Octavo does without.
BOUND = {"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}


def run(command, environment=None):
    command = [str(word) for word in command]
    print("  " + " ".join(command), file=sys.stderr, flush=True)
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed with {done.returncode}:\n{done.stderr[-2000:]}")
    return done


class Octavo:
    """Rates of a round: {(test, depth, streams): {variant: (best, median)}} in tok/s; here one variant."""

    name = "octavo"

    def __init__(self, args):
        self.args = args
        self.version = run([args.octavo, "--version"]).stdout.strip()
        self.told = f"{self.version}, source {source_commit()}"

    def commands(self, model):
        args = self.args
        common = ["--repeats", args.repeats, "--threads", args.threads, "--json"]
        out = [[args.octavo, "bench", "prefill", model, "--tokens", args.prefill, *common],
               [args.octavo, "bench", "decode", model, "--tokens", args.decode,
                "--depths", ",".join(map(str, [0, *args.depths])), *common]]
        if args.batched:
            out.append([args.octavo, "bench", "batched", model, "--tokens", args.decode,
                        "--streams", ",".join(map(str, args.streams)), *common])
        return out

    def round(self, model):
        rates = {}
        for command in self.commands(model):
            told = json.loads(run(command).stdout)
            variant = f"{told['isa']}, {told['threads']} threads, KV {told['kv_type']}"
            for row in told["results"]:
                test = (row["test"], row["depth"], row["streams"])
                rates[test] = {variant: (row["tokens_per_s_best"], row["tokens_per_s"])}
        return rates


def help_of(program):
    told = subprocess.run([program, "--help"], capture_output=True, text=True)
    return told.stdout + told.stderr


def knows(help_text, flag):
    return re.search(rf"(^|\s){flag}\b", help_text) is not None


class Peer:
    def __init__(self, args, name, bench, batched):
        self.args, self.name, self.bench, self.batched = args, name, bench, batched
        self.help = help_of(bench)
        self.told = ""

    def commands(self, model):
        """Of llama-bench, each with what its flags are called here."""
        args = self.args
        flash = ("on", "off") if re.search(r"-fa\b.*on\|off", self.help) else ("1", "0")
        repack = ([], ["-rtr", "1"]) if knows(self.help, "-rtr") else ([],)
        for fa, rtr in itertools.product(flash, repack):
            flags = ["-fa", fa, *rtr]
            base = [self.bench, "-m", model, "-t", args.threads, "-r", args.repeats, "-o", "json", *flags]
            yield " ".join(flags), base + ["-p", args.prefill, "-n", args.decode]
            for depth in args.depths:
                if knows(self.help, "-gp"):  # ik_llama.cpp: tokens generated after a prompt that is not timed
                    yield " ".join(flags), base + ["-p", 0, "-n", 0, "-gp", f"{depth},{args.decode}"]
                elif knows(self.help, "-d"):
                    yield " ".join(flags), base + ["-p", 0, "-n", args.decode, "-d", depth]

    def batched_commands(self, model):
        if self.batched is None:
            return
        args, text = self.args, help_of(self.batched)
        flash = (["-fa", "on"], ["-fa", "off"]) if re.search(r"-fa\b.*on\|off", text) else (["-fa"], [])
        repack = ([], ["-rtr"]) if knows(text, "-rtr") else ([],)
        context = max(args.streams) * (args.decode + 2) + 64
        for fa, rtr in itertools.product(flash, repack):
            yield " ".join([*fa, *rtr]) or "no flags", [
                self.batched, "-m", model, "-t", args.threads, "-c", context, "-npp", 1, "-ntg", args.decode,
                "-npl", ",".join(map(str, args.streams)), *fa, *rtr]

    def round(self, model):
        rates = {}
        for variant, command in self.commands(model):
            done = run(command, BOUND)
            for row in json.loads(done.stdout):
                self.describe(row, done.stderr)
                test, pair = bench_row(row)
                rates.setdefault(test, {})[variant] = pair
        for variant, command in self.batched_commands(model):
            runs = [batched_rates(run(command, BOUND).stdout) for _ in range(self.args.repeats)]
            for streams in runs[0]:
                seen = [rate[streams] for rate in runs]
                rates.setdefault(("decode", 0, streams), {})[variant] = (max(seen), statistics.median(seen))
        return rates

    def describe(self, row, stderr):
        system = [line.strip() for line in stderr.splitlines() if re.search("system_info|SIMD|AVX", line)]
        self.told = (f"commit {row['build_commit']}, build {row['build_number']}, {row.get('backends', 'CPU')} on "
                     f"{row['cpu_info']}, {row['n_threads']} threads, KV {row['type_k']}/{row['type_v']}, "
                     + " ".join(f"{key}={value}" for key, value in BOUND.items())
                     + "".join(f"\n    {line}" for line in system))


def bench_row(row):
    """One row of llama-bench: ((test, depth, streams), (best, median))."""
    pair = (max(row["samples_ts"]), statistics.median(row["samples_ts"]))
    if row["n_gen"] == 0:
        return ("prefill", row.get("n_depth", 0), 1), pair
    return ("decode", row.get("n_depth", row["n_prompt"]), 1), pair


def batched_rates(text):
    """{streams: decode tok/s} of llama-batched-bench's table: PP, TG, B, N_KV, T_PP, S_PP, T_TG, S_TG, ..."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines()
            if re.match(r"\s*\|\s*\d", line)]
    return {int(cells[2]): float(cells[7]) for cells in rows}


def measure(args, programs, model):
    """{program: {test: {variant: [(best, median) of each round]}}}"""
    rates = {program.name: {} for program in programs}
    for index in range(args.rounds):
        for program in programs if index % 2 == 0 else programs[::-1]:
            for test, by_variant in program.round(model).items():
                for variant, pair in by_variant.items():
                    rates[program.name].setdefault(test, {}).setdefault(variant, []).append(pair)
    return rates


def best_of(by_variant):
    """(best, the median of the same variant, the variant)."""
    return max((max(best for best, _ in pairs), statistics.median(median for _, median in pairs), variant)
               for variant, pairs in by_variant.items())


def summary(rates):
    """Rows (test, peer, ours and theirs as best_of, ratio of the best, ratio of the medians)."""
    rows = []
    for test, by_variant in rates["octavo"].items():
        ours = best_of(by_variant)
        for peer in rates:
            if peer != "octavo" and test in rates[peer]:
                theirs = best_of(rates[peer][test])
                rows.append((test, peer, ours, theirs, ours[0] / theirs[0], ours[1] / theirs[1]))
    return rows


def name_of(test):
    what, depth, streams = test
    return what + (f" at {depth}" if depth else "") + (f", {streams} streams" if streams > 1 else "")


def named(words):
    """NAME=PATH, in order."""
    pairs = [word.partition("=")[::2] for word in words]
    for name, path in pairs:
        if not name or not path:
            sys.exit(f"'{name or path}' is not NAME=PATH")
    return dict(pairs)


def numbers(text):
    return [int(word) for word in text.split(",") if word]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="FILE", help="GGUF files")
    parser.add_argument("--octavo", required=True, metavar="BIN")
    parser.add_argument("--peer", action="append", required=True, metavar="NAME=BIN", help="a llama-bench; repeatable")
    parser.add_argument("--batched", action="append", default=[], metavar="NAME=BIN",
                        help="the llama-batched-bench of that peer")
    parser.add_argument("--prefill", type=int, default=512, help="prompt tokens (default 512)")
    parser.add_argument("--decode", type=int, default=64, help="generated tokens (default 64)")
    parser.add_argument("--depths", type=numbers, default=[4096], metavar="N,...",
                        help="decode after so many tokens, too (default 4096)")
    parser.add_argument("--streams", type=numbers, default=[2, 4, 8, 16, 32], metavar="N,...",
                        help="of batched decode (default 2,4,8,16,32)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)),
                        help="of each program (default: all cores)")
    parser.add_argument("--rounds", type=int, default=5, help="of all programs (default 5)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each test in a round (default 3)")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    args = parser.parse_args()

    peers, batched = named(args.peer), named(args.batched)
    if unknown := set(batched) - set(peers):
        sys.exit(f"--batched {', '.join(unknown)}: no --peer of that name")
    programs = [Octavo(args), *(Peer(args, name, path, batched.get(name)) for name, path in peers.items())]
    report = {"machine": machine(), "models": {}}
    print("{cpu}, {cores} cores, load {load_1min:.2f}, {date}".format(**report["machine"]))
    print(f"{args.rounds} rounds of {args.repeats} runs, {args.threads} threads")
    for model in args.models:
        rates = measure(args, programs, model)
        print(f"\n{pathlib.Path(model).name}")
        for program in programs:
            print(f"  {program.name}: {program.told}")
        print(f"  {'':<22}{'peer':<12}{'octavo':>10}{'peer':>10}{'ratio':>8}{'of medians':>12}   peer's flags")
        for test, peer, ours, theirs, ratio, median_ratio in summary(rates):
            print(f"  {name_of(test):<22}{peer:<12}{ours[0]:>10.1f}{theirs[0]:>10.1f}{ratio:>8.2f}{median_ratio:>12.2f}"
                  f"   {theirs[2]}")
        report["models"][model] = {
            "told": {program.name: program.told for program in programs},
            "rates": {program: [{"test": what, "depth": depth, "streams": streams, "variants": by_variant}
                                for (what, depth, streams), by_variant in tests.items()]
                      for program, tests in rates.items()}}
    if args.json:
        with open(args.json, "w") as file:
            json.dump(report, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
