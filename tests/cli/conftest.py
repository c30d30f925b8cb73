"""What the command-line tests share: the built program, the oracles, and a way to run one with the other."""

import json
import os
import pathlib
import re
import subprocess
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OCTAVO = os.environ.get("OCTAVO_BIN", str(ROOT / "build/release/src/cli/octavo"))
ORACLES = pathlib.Path(os.environ.get("OCTAVO_ORACLES", ROOT.parent / "shared/oracles"))

# The tests share packed weights, with nobody else.
_packs = tempfile.TemporaryDirectory(prefix="octavo-packs-")
os.environ["OCTAVO_CACHE"] = _packs.name

PROGRESS = re.compile(r"[a-z ]+: [\d.]+( \w+)? of [\d.]+( \w+)?")


def octavo(*args, stdin="", seconds=120):
    """Runs the program; never a shell, never a hang."""
    return subprocess.run([OCTAVO, *map(str, args)], input=stdin, capture_output=True, text=True, timeout=seconds)


def json_lines(*args, lines, seconds=300):
    """Sends each line as JSON, expects as many back."""
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    run = octavo(*args, stdin=text, seconds=seconds)
    assert run.returncode == 0, run.stderr
    answers = [json.loads(line) for line in run.stdout.split("\n")[:-1]]  # not splitlines: U+2028 is text
    assert len(answers) == len(lines)
    return answers


def assert_refused(run, code, *words):
    """One clear line on stderr (progress of long work apart), nothing on stdout, and the exit code."""
    assert run.returncode == code, (run.returncode, run.stdout, run.stderr)
    assert run.stdout == ""
    lines = [line for line in run.stderr.splitlines() if not PROGRESS.fullmatch(line)]
    assert len(lines) == 1, run.stderr
    for word in words:
        assert word in lines[0], lines[0]


def oracle(*path):
    file = ORACLES.joinpath(*path)
    if not file.exists():
        pytest.skip(f"no reference data: {file} is not on this machine (set OCTAVO_ORACLES)")
    return json.loads(file.read_text())
