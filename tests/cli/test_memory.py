"""The memory plan against the process: what the server shows as resident is what it planned, idle and under load."""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import time
import urllib.request

import pytest

from conftest import OCTAVO, assert_refused, octavo

MIB = 1 << 20
MODELS = pathlib.Path(os.environ.get("OCTAVO_MODELS", pathlib.Path(
    os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "octavo/models"))
NOT_IN_RSS = {"swap", "page tables"}  # nothing was swapped; page tables are the kernel's


class Server:
    def __init__(self, model, *args):
        self.process = subprocess.Popen([OCTAVO, "serve", model, "--port", "0", *args], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.banner = ""
        for line in self.process.stdout:
            self.banner += line
            if ready := re.match(r"octavo is ready: (\S+)", line):
                self.url = ready[1]
                break
        self.model = json.loads(self.get("/v1/models"))["data"][0]["id"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.farewell = self.process.communicate(timeout=60)[0]

    def get(self, path):
        return urllib.request.urlopen(self.url + path, timeout=60).read().decode()

    def complete(self, number):
        body = {"model": self.model, "prompt": f"Tell the story of number {number}. " * 12, "max_tokens": 40,
                "temperature": 0.8, "seed": number, "ignore_eos": True}
        request = urllib.request.Request(self.url + "/v1/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        assert urllib.request.urlopen(request, timeout=300).status == 200

    def memory(self):
        found = re.findall(r'octavo:memory_(planned|actual)_bytes\{.*tag="([^"]+)".*\} (\S+)', self.get("/metrics"))
        return ({tag: float(value) for kind, tag, value in found if kind == "planned"},
                {tag: float(value) for kind, tag, value in found if kind == "actual"})

    def rss(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024

    def wait_until_resident(self):
        """Pool and buffers become resident in the background, and the check of the pack ends."""
        for _ in range(600):
            planned, actual = self.memory()
            if actual["kv pool"] >= 0.99 * planned["kv pool"] and actual["activations"] >= 0.99 * planned["activations"]:
                return
            time.sleep(0.1)
        pytest.skip("this machine is too busy, or its kernel too old, to make the pool resident ahead of its use")

    def assert_as_planned(self):
        planned, actual = self.memory()
        expected = sum(bytes for tag, bytes in planned.items() if tag not in NOT_IN_RSS)
        slack = max(0.02 * expected, 16 * MIB)
        assert abs(self.rss() - expected) <= slack, (self.rss() / MIB, expected / MIB, planned, actual)


@pytest.mark.parametrize("name", ["smollm2", "gemma3-270m"])
def test_resident_is_what_was_planned(name):
    if not (MODELS / f"{name}.gguf").exists():
        pytest.skip(f"the packaged model {name} has not been fetched")
    octavo("pack", name)
    with Server(name, "--kv-bytes", "192MiB", "--max-num-seqs", "16") as server:
        server.wait_until_resident()
        server.assert_as_planned()
        with concurrent.futures.ThreadPoolExecutor(24) as users:
            list(users.map(server.complete, range(48)))
        server.assert_as_planned()
        planned, actual = server.memory()
        assert set(planned) == set(actual) >= {"weights", "activations", "kv pool", "code", "stacks", "page tables"}
        for tag in ("weights", "activations", "kv pool"):
            assert abs(actual[tag] - planned[tag]) <= 0.02 * planned[tag] + MIB, (tag, planned, actual)
    assert re.search(r"memory +\S+ \S+ planned of", server.banner)
    assert re.search(r"kv pool .* planned .* resident", server.farewell)


def test_what_cannot_fit_is_refused_with_the_nearest():
    if not (MODELS / "smollm2.gguf").exists():
        pytest.skip("the packaged model smollm2 has not been fetched")
    assert_refused(octavo("serve", "smollm2", "--port", "0", "--kv-bytes", "1MiB", "--max-model-len", "4096"), 2,
                   "4096 tokens need 90.0 MiB", "--max-model-len", "--kv-bytes", "of memory")
    assert_refused(octavo("serve", "smollm2", "--port", "0", "--kv-bytes", "900TiB"), 2, "--kv-bytes", "of memory")
