#!/usr/bin/env python3
"""Serving, measured black-box over HTTP: Octavo beside llama-server, or any OpenAI-compatible server by its URL.

  bench/compare_serving.py --octavo BIN --llama-server BIN --model FILE.gguf [--repeats 3] [--json FILE]
  bench/compare_serving.py --url http://127.0.0.1:8080 --case mixed

The first form starts each server afresh for every case, one at a time and in alternation, and prints the medians of the
repeats with their ratios. docs/benchmarks.md says what each case asks and what its figures mean.
"""

import argparse
import asyncio
import json
import math
import statistics
import sys

from serving_cases import CASES, SMALL, Sizes
from serving_client import HttpError, Server
from serving_launch import LlamaServer, Octavo, Running, machine

COMPARED = ("_s", "_ms", "_computed", "seconds")  # endings of the figures whose ratio means something
TARGET_GAPS = 1.5  # --target-tpot-ms, in medians of the stream's gaps before the long prompt


async def run_case(url, name, case, sizes, seed):
    server = Server(url, name)
    await server.connect()
    return await CASES[case](server, sizes, seed)


def measure(url, name, case, sizes, seed):
    return asyncio.run(run_case(url, name, case, sizes, seed))


def say(text):
    print(text, file=sys.stderr, flush=True)


def measure_started(command, name, case, sizes, seed):
    say(f"{case}: {name}: {' '.join(map(str, command))}")
    with Running(command) as running:
        return measure(running.url, name, case, sizes, seed)


def faster_flash_attention(llama, sizes, seed):
    """'on' or 'off', whichever gives more tokens a second in the mixed case."""
    rates = {}
    for choice in ("on", "off"):
        command = llama.command("mixed", sizes, flash_attention=choice)
        rates[choice] = measure_started(command, f"llama-server -fa {choice}", "mixed", sizes, seed)["output_tok_per_s"]
    say(f"flash attention: {rates['on']:.1f} tok/s on, {rates['off']:.1f} tok/s off")
    return max(rates, key=rates.get), rates


def run_servers(servers, cases, sizes, seed, repeats):
    """{case: {server: [figures of each repeat]}}, {case: {server: command}}"""
    results, commands = {}, {}
    for case in cases:
        results[case], commands[case] = {}, {}
        for repeat in range(repeats):
            order = servers if repeat % 2 == 0 else servers[::-1]
            for server in order:
                todo = [(server.name, server.command(case, sizes))]
                while todo:
                    name, command = todo.pop()
                    figures = measure_started(command, name, case, sizes, f"{seed}/{case}/{repeat}")
                    results[case].setdefault(name, []).append(figures)
                    commands[case].setdefault(name, " ".join(map(str, command)))
                    if case == "long-prompt" and name == "octavo" and server.has_target and "ratio" in figures:
                        target = max(1, math.ceil(TARGET_GAPS * figures["median_gap_before_ms"]))
                        todo.append(("octavo, target", server.command(case, sizes, target_tpot_ms=target)))
    return results, commands


def middle(values):
    """The median of numbers, or the different texts."""
    numbers = [v for v in values if isinstance(v, (int, float))]
    if len(numbers) == len(values):
        return statistics.median(numbers)
    return "; ".join(dict.fromkeys(str(v) for v in values))


def shown(value):
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"
    return "" if value is None else str(value)


def print_tables(results):
    for case, by_server in results.items():
        names = sorted(by_server, key=lambda n: (not n.startswith("octavo"), n))
        keys = list(dict.fromkeys(key for name in names for figures in by_server[name] for key in figures))
        compares = "octavo" in by_server and "llama-server" in by_server
        print(f"\n{case}" + (f"  (medians of {len(by_server[names[0]])})" if len(by_server[names[0]]) > 1 else ""))
        print(f"  {'':<28}" + "".join(f"{name:>18}" for name in names) + (f"{'ratio':>10}" if compares else ""))
        for key in keys:
            values = {name: middle([f[key] for f in by_server[name] if key in f] or [""]) for name in names}
            line = f"  {key:<28}" + "".join(f"{shown(values[name])[:60]:>18}" for name in names)
            ours, theirs = values.get("octavo"), values.get("llama-server")
            if compares and key.endswith(COMPARED) and all(isinstance(v, (int, float)) and v > 0 for v in (ours, theirs)):
                line += f"{ours / theirs:>10.2f}"
            print(line)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="measure the server that listens there")
    parser.add_argument("--octavo", metavar="BIN", help="start this octavo")
    parser.add_argument("--llama-server", metavar="BIN", help="start this llama-server")
    parser.add_argument("--model", metavar="FILE", help="GGUF file for the servers to start")
    parser.add_argument("--threads", type=int, default=2, help="of each server (default 2)")
    parser.add_argument("--flash-attention", choices=("on", "off", "faster"), default="faster",
                        help="of llama-server; faster: tried first (default)")
    parser.add_argument("--case", action="append", choices=list(CASES), help="repeatable (default: all)")
    parser.add_argument("--repeats", type=int, default=1, help="of each case and server (default 1)")
    parser.add_argument("--seed", default="1", help="of prompts and lengths (default 1)")
    parser.add_argument("--small", action="store_true", help="small sizes: shows that it works, measures nothing")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    args = parser.parse_args()
    starts = args.octavo or args.llama_server
    if bool(args.url) == bool(starts):
        parser.error("give --url, or --octavo and/or --llama-server")
    if starts and not args.model:
        parser.error("--model FILE is needed to start a server")
    return args


def main():
    args = arguments()
    sizes, cases = SMALL if args.small else Sizes(), args.case or list(CASES)
    report = {"machine": machine(), "seed": args.seed, "sizes": vars(sizes)}
    print("{cpu}, {cores} cores, load {load_1min:.2f}, {date}".format(**report["machine"]))
    if args.url:
        try:
            results = {case: {args.url: [measure(args.url, args.url, case, sizes, f"{args.seed}/{case}/{repeat}")
                                         for repeat in range(args.repeats)]} for case in cases}
        except (OSError, HttpError) as error:
            sys.exit(f"{args.url}: {error}")
    else:
        servers = [Octavo(args.octavo, args.model, args.threads)] if args.octavo else []
        if args.llama_server:
            llama = LlamaServer(args.llama_server, args.model, args.threads)
            if args.flash_attention == "faster":
                llama.flash_attention, report["flash_attention"] = faster_flash_attention(llama, sizes, args.seed)
            else:
                llama.flash_attention = args.flash_attention
            servers.append(llama)
        report["versions"] = {server.name: server.version for server in servers}
        for name, version in report["versions"].items():
            print(f"{name}: {version}")
        results, report["commands"] = run_servers(servers, cases, sizes, args.seed, args.repeats)
        for case, by_server in report["commands"].items():
            for command in by_server.values():
                print(f"{case}: {command}")
    print_tables(results)
    report["results"] = results
    if args.json:
        with open(args.json, "w") as file:
            json.dump(report, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
