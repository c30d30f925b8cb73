"""The pack cache from outside: packing ahead, starting with and without, two at once, places that take nothing."""

import hashlib
import json
import os
import pathlib
import re
import subprocess

import pytest

from conftest import OCTAVO, ROOT, assert_refused, octavo

TINY = ROOT / "tests/golden/tiny/llama"  # a folder without a tokenizer
GENERATE = ["generate", "--model", TINY, "--prompts", "-", "--max-num-batched-tokens", "64"]
LINE = json.dumps({"ids": [1, 2, 3, 4], "max_tokens": 8, "temperature": 0, "ignore_eos": True}) + "\n"


@pytest.fixture
def packs(tmp_path, monkeypatch):
    monkeypatch.setenv("OCTAVO_CACHE", str(tmp_path / "packs"))
    return tmp_path / "packs"


def sha256_of(*files):
    digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def test_pack_then_check(packs):
    first, second = octavo("pack", TINY), octavo("pack", TINY)
    for run, begin in ((first, "packed in "), (second, "packed before, checked in ")):
        assert run.returncode == 0 and run.stderr == "", run.stderr
        assert run.stdout.startswith(begin)
        assert f"SHA-256 of the model: {sha256_of(TINY / 'config.json', TINY / 'model.safetensors')}\n" in run.stdout
    (pack,) = packs.glob("*.pack")
    assert str(pack) in first.stdout and str(pack) in second.stdout


def test_starts_agree_with_and_without(packs):
    plain = octavo(*GENERATE, "--no-cache", stdin=LINE)
    assert plain.returncode == 0 and not packs.exists(), plain.stderr
    cold, cached = octavo(*GENERATE, stdin=LINE), octavo(*GENERATE, stdin=LINE)
    assert plain.stdout == cold.stdout == cached.stdout
    assert len(list(packs.glob("*.pack"))) == 1
    assert "notice" not in cold.stderr + cached.stderr


def test_inspect_tells_of_the_pack(packs):
    assert json.loads(octavo("inspect", TINY, "--json").stdout)["pack"] is None
    assert "not in the cache" in octavo("inspect", TINY).stdout
    octavo("pack", TINY)
    (pack,) = packs.glob("*.pack")
    assert json.loads(octavo("inspect", TINY, "--json").stdout)["pack"]["path"] == str(pack)
    assert str(pack) in octavo("inspect", TINY).stdout


def test_a_damaged_pack_is_made_again(packs):
    octavo("pack", TINY)
    (pack,) = packs.glob("*.pack")
    damaged = bytearray(pack.read_bytes())
    damaged[-100] ^= 1
    pack.write_bytes(damaged)
    run = octavo("pack", TINY)
    assert run.returncode == 0 and run.stdout.startswith("packed in "), run.stdout
    assert re.fullmatch(r"notice: .*damaged.*: packed again\n", run.stderr)
    damaged = bytearray(pack.read_bytes())
    damaged[9] ^= 1
    pack.write_bytes(damaged)
    run = octavo(*GENERATE, stdin=LINE)
    assert run.returncode == 0 and "packed again" in run.stderr


def test_two_at_once_both_end_well(packs):
    runs = [subprocess.Popen([OCTAVO, "pack", str(TINY)], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    answers = [run.communicate(timeout=120)[0] for run in runs]
    assert all(run.returncode == 0 for run in runs)
    assert sorted(answer.split(" in ")[0] for answer in answers) == [
        "packed", "packed before, checked", "packed before, checked"]
    assert len(list(packs.glob("*.pack"))) == 1


@pytest.mark.parametrize("place", ["/proc/octavo", "/dev/full"])
def test_a_place_that_takes_nothing_costs_time_only(place, monkeypatch):
    monkeypatch.setenv("OCTAVO_CACHE", place)
    run = octavo(*GENERATE, stdin=LINE)
    assert run.returncode == 0 and len(run.stdout.splitlines()) == 1
    assert re.search(rf"^notice: packed in memory: {place}.*$", run.stderr, re.MULTILINE)
    assert_refused(octavo("pack", TINY), 1, place)


def test_a_file_size_limit_costs_time_only(packs):
    # Packs begin 2 MiB into their file.
    run = subprocess.run(["bash", "-c", 'ulimit -f 1024; exec "$@"', "-", OCTAVO, *map(str, GENERATE)],
                         input=LINE, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0 and len(run.stdout.splitlines()) == 1, run.stderr
    assert "notice: packed in memory" in run.stderr and list(packs.iterdir()) == []


def test_the_cache_can_be_switched_off_and_limited(packs, monkeypatch):
    run = octavo(*GENERATE, "--cache-bytes", "1MiB", stdin=LINE)
    assert run.returncode == 0 and "--cache-bytes" in run.stderr
    assert_refused(octavo("pack", TINY, "--cache-bytes", "1MiB"), 1, "--cache-bytes")
    monkeypatch.setenv("OCTAVO_CACHE", "off")
    run = octavo(*GENERATE, stdin=LINE)
    assert run.returncode == 0 and run.stderr == ""
    assert_refused(octavo("pack", TINY), 1, "OCTAVO_CACHE")


def test_the_default_place_is_the_users_cache(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k != "OCTAVO_CACHE"}
    for extra, place in ({"XDG_CACHE_HOME": str(tmp_path / "xdg")}, "xdg/octavo/packed"), \
            ({"XDG_CACHE_HOME": "", "HOME": str(tmp_path)}, ".cache/octavo/packed"):
        subprocess.run([OCTAVO, "pack", str(TINY)], env={**environment, **extra}, check=True, stdout=subprocess.DEVNULL)
        assert len(list((tmp_path / pathlib.Path(place)).glob("*.pack"))) == 1
