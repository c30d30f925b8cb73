#!/usr/bin/env python3
"""Run clang-tidy over the sources, newest change first, for a bounded time.

usage: tidy.py --build FOLDER [--seconds N] [FILE...]     FOLDER has compile_commands.json
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def newest_first(files):
    """By the time of the last commit that touched them; files git does not know come first."""
    log = subprocess.run(["git", "log", "--name-only", "--format="], cwd=ROOT, capture_output=True, text=True).stdout
    rank = {}
    for name in log.splitlines():
        rank.setdefault(name, len(rank))
    return sorted(files, key=lambda file: rank.get(os.path.relpath(file, ROOT), -1))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--build", required=True, type=pathlib.Path)
    options.add_argument("--seconds", type=float, default=float("inf"))
    options.add_argument("files", nargs="*")
    options = options.parse_args()

    commands = json.loads((options.build / "compile_commands.json").read_text())
    known = {command["file"] for command in commands if f"{ROOT}/src/" in command["file"]}
    files = [str(pathlib.Path(file).resolve()) for file in options.files] or newest_first(known)
    deadline = time.monotonic() + options.seconds

    def check(file):
        if time.monotonic() > deadline:
            return None
        run = subprocess.run(["clang-tidy-14", "--quiet", "-p", str(options.build), file], capture_output=True, text=True)
        return run.returncode, run.stdout

    checked, bad = 0, 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for result in pool.map(check, files):
            if result is None:
                continue
            checked += 1
            if result[0] != 0:
                bad += 1
                print(result[1])
    print(f"clang-tidy: {checked} of {len(files)} files checked, {bad} with findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
