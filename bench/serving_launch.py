"""Starts the servers that are compared, with comparable settings for each case."""

import hashlib
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import time
import urllib.request

START_S = 300


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def first_line_with(text, word):
    return next((line.strip() for line in text.splitlines() if word in line), "version unknown")


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def source_commit():
    """Of the tree that this script lies in."""
    told = subprocess.run(["git", "-C", str(pathlib.Path(__file__).parent), "describe", "--always", "--dirty"],
                          capture_output=True, text=True)
    return told.stdout.strip() or "unknown"


class Running:
    """A server process that answers /health; killed on exit. Its output goes to a file, shown if it does not start."""

    def __init__(self, command):
        self.command = [str(word) for word in command]

    def __enter__(self):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = tempfile.NamedTemporaryFile("w+", prefix="serving-", suffix=".log")
        self.process = subprocess.Popen([*self.command, "--host", "127.0.0.1", "--port", str(self.port)],
                                        stdout=self.log, stderr=self.log)
        try:
            self._wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _wait_until_ready(self):
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(self.url + "/health", timeout=5) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                pass
            time.sleep(0.1)
        self.log.seek(0)
        tail = "".join(self.log.readlines()[-15:])
        raise SystemExit(f"{' '.join(self.command)} did not start within {START_S} s:\n{tail}")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()


class Octavo:
    """octavo serve. Defaults, but for what a case is about."""
    name = "octavo"

    def __init__(self, binary, model, threads):
        self.binary, self.model, self.threads = binary, model, threads
        run = lambda *words: subprocess.run([binary, *words], capture_output=True, text=True)  # noqa: E731
        self.version = run("--version").stdout.strip()
        self.version += f", source {source_commit()}"
        self.has_target = "--target-tpot-ms" in run("serve", "--help").stdout
        self.kv_bytes_per_token = json.loads(run("inspect", model, "--json").stdout)["kv_bytes_per_token"]

    def command(self, case, sizes, target_tpot_ms=None):
        out = [self.binary, "serve", self.model, "--threads", self.threads]
        if case == "tiny-pool":
            out += ["--kv-bytes", self.kv_bytes_per_token * sizes.pool]
        if case == "priority":
            out += ["--policy", "priority", "--max-num-seqs", sizes.seats]
        if target_tpot_ms:
            out += ["--target-tpot-ms", target_tpot_ms]
        return out


class LlamaServer:
    """llama-server: as many slots as the case has clients, each with room for the longest request."""
    name = "llama-server"

    def __init__(self, binary, model, threads, flash_attention="on"):
        self.binary, self.model, self.threads, self.flash_attention = binary, model, threads, flash_attention
        told = subprocess.run([binary, "--version"], capture_output=True, text=True)
        self.version = first_line_with(told.stdout + told.stderr, "version") + f", sha256 {sha256_of(binary)[:12]}"

    def command(self, case, sizes, flash_attention=None):
        longest = {"shared-prefix": sizes.prefix + sizes.tail + 64, "long-prompt": 2 * sizes.long_prompt + 64,
                   "mixed": sizes.mixed_prompt[1] + sizes.mixed_output[1] + 64,
                   "priority": sizes.queued_prompt + sizes.queued_output + 64}
        slots = {"shared-prefix": sizes.clients_sharing, "long-prompt": 2, "tiny-pool": sizes.pool_requests,
                 "mixed": sizes.mixed_clients, "priority": sizes.seats}[case]
        out = [self.binary, "-m", self.model, "-t", self.threads, "-tb", self.threads, "-np", slots,
               "-fa", flash_attention or self.flash_attention]
        if case == "tiny-pool":  # one pool for all slots, as large as a single request may be
            return [*out, "-kvu", "-c", sizes.pool]
        return [*out, "-c", slots * -(-longest[case] // 256) * 256]


def machine():
    """What the figures were taken on."""
    cpu = next((line.split(": ", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    return {"cpu": cpu, "cores": len(os.sched_getaffinity(0)), "load_1min": os.getloadavg()[0],
            "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())}
