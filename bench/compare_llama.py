#!/usr/bin/env python3
"""Prefill and decode of one sequence: octavo bench beside llama-bench, in alternation on the same files.

  bench/compare_llama.py --octavo BIN --llama-bench BIN [--rounds 5] [--json FILE] FILE.gguf...

Each round runs both programs, who is first changes with the round, and llama-bench with flash attention on and off:
the better one counts. Best is the fastest run of all rounds (the least disturbed), median that of the rounds' medians.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

from serving_launch import machine, source_commit

TESTS = ("prefill", "decode")


def run(command):
    command = [str(word) for word in command]
    print("  " + " ".join(command), file=sys.stderr, flush=True)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def octavo_command(args, model):
    return [args.octavo, "bench", model, "--prefill", args.prefill, "--decode", args.decode, "--batch", 1,
            "--repeats", args.repeats, "--threads", args.threads, "--json"]


def llama_command(args, model):
    return [args.llama_bench, "-m", model, "-p", args.prefill, "-n", args.decode, "-t", args.threads,
            "-r", args.repeats, "-fa", "on,off", "-o", "json"]


def octavo_round(args, model):
    """{test: (best, median)} in tok/s, and what the program says of itself."""
    told = run(octavo_command(args, model))
    rates = {r["test"].split()[0]: (r["tokens_per_s_best"], r["tokens_per_s"]) for r in told["results"]}
    return {"octavo": rates}, f"{told['isa']}, {told['threads']} threads, KV {told['kv_type']}"


def llama_round(args, model):
    rates, told = {}, run(llama_command(args, model))
    for r in told:
        name = f"llama-bench -fa {'on' if r['flash_attn'] in (1, True) else 'off'}"
        test = "prefill" if r["n_gen"] == 0 else "decode"
        rates.setdefault(name, {})[test] = (max(r["samples_ts"]), statistics.median(r["samples_ts"]))
    r = told[0]
    return rates, f"build {r['build_number']}, commit {r['build_commit']}, {r['n_threads']} threads, KV {r['type_k']}"


def measure(args, model):
    """{program: {test: [(best, median) of each round]}}, {program: its words on itself}"""
    rates, told = {}, {}
    for index in range(args.rounds):
        rounds = [("octavo", octavo_round), ("llama-bench", llama_round)]
        for program, one_round in rounds if index % 2 == 0 else rounds[::-1]:
            by_name, told[program] = one_round(args, model)
            for name, by_test in by_name.items():
                for test, pair in by_test.items():
                    rates.setdefault(name, {}).setdefault(test, []).append(pair)
    return rates, told


def summary(rates):
    """Rows (test, which, octavo, llama-bench, its flags, ratio)."""
    rows = []
    for test in TESTS:
        for which, pick in (("best", lambda pairs: max(b for b, _ in pairs)),
                            ("median", lambda pairs: statistics.median(m for _, m in pairs))):
            ours = pick(rates["octavo"][test])
            theirs, flags = max((pick(by_test[test]), name) for name, by_test in rates.items() if name != "octavo")
            rows.append((test, which, ours, theirs, flags.removeprefix("llama-bench "), ours / theirs))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="FILE", help="GGUF files")
    parser.add_argument("--octavo", required=True, metavar="BIN")
    parser.add_argument("--llama-bench", required=True, metavar="BIN")
    parser.add_argument("--prefill", type=int, default=512, help="prompt tokens (default 512)")
    parser.add_argument("--decode", type=int, default=64, help="generated tokens (default 64)")
    parser.add_argument("--threads", type=int, default=2, help="of each program (default 2)")
    parser.add_argument("--rounds", type=int, default=5, help="of both programs (default 5)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each test in a round (default 3)")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    args = parser.parse_args()

    report = {"machine": machine(), "models": {}}
    print("{cpu}, {cores} cores, load {load_1min:.2f}, {date}".format(**report["machine"]))
    version = subprocess.run([args.octavo, "--version"], capture_output=True, text=True).stdout.strip()
    print(f"{version}, source {source_commit()}; {args.rounds} rounds of {args.repeats} runs")
    for model in args.models:
        rates, told = measure(args, model)
        rows = summary(rates)
        print(f"\n{pathlib.Path(model).name}")
        for program, words in told.items():
            print(f"  {program}: {words}")
        for program, command in (("octavo", octavo_command), ("llama-bench", llama_command)):
            print(f"  {program}: {' '.join(map(str, command(args, model)))}")
        print(f"  {'':<18}{'octavo':>12}{'llama-bench':>14}{'ratio':>8}")
        for test, which, ours, theirs, flags, ratio in rows:
            print(f"  {f'{test}, {which}':<18}{ours:>12.1f}{theirs:>14.1f}{ratio:>8.2f}   {flags}")
        report["models"][model] = {"told": told, "rates": rates}
    if args.json:
        with open(args.json, "w") as file:
            json.dump(report, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
