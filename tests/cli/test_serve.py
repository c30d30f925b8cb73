"""octavo serve from its first line to its last: banner, the curl line as printed, refusals, drain."""

import json
import os
import signal
import socket
import subprocess

from conftest import OCTAVO, assert_refused, octavo


class Serving:
    """A server on a free port, its start-up read up to the curl line."""

    def __init__(self, *args, **env):
        self.process = subprocess.Popen([OCTAVO, "serve", "--port", "0", *args], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, env={**os.environ, **env})
        self.banner, self.url = [], None
        for line in self.process.stdout:
            if line.startswith("octavo is ready: "):
                self.url = line.split()[-1]
                self.curl = next(self.process.stdout).strip()
                break
            self.banner.append(line)
        assert self.url, self.banner

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def run_curl_line(self, **env):
        run = subprocess.run(["bash", "-c", self.curl], capture_output=True, text=True, timeout=120,
                             env={**os.environ, **env})
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout)


def test_the_curl_line_works_as_printed_and_sigterm_drains():
    with Serving("smollm2") as server:
        told = "".join(server.banner)
        for word in ("weights", "kernels", "threads", "bytes per token", "blocks", "tokens fit", "longest"):
            assert word in told, told
        assert server.url.startswith("http://127.0.0.1:")
        answer = server.run_curl_line()
        assert answer["model"] == "smollm2" and "Paris" in answer["choices"][0]["message"]["content"]
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=30) == 0
        assert "every request was answered" in server.process.stdout.read()


def test_a_base_model_is_shown_with_completions():
    with Serving("gemma3-270m", "--served-model-name", "it's mine") as server:
        answer = server.run_curl_line()
        assert answer["model"] == "it's mine" and answer["choices"][0]["text"]


def test_the_curl_line_takes_its_key_from_the_environment():
    with Serving("smollm2", OCTAVO_API_KEY="secret") as server:
        assert "secret" not in server.curl
        assert server.run_curl_line(OCTAVO_API_KEY="wrong")["error"]
        assert server.run_curl_line(OCTAVO_API_KEY="secret")["choices"]


def test_beyond_loopback_needs_a_key_or_no_auth(tmp_path):
    run = octavo("serve", "smollm2", "--host", "0.0.0.0", "--port", 0)
    assert_refused(run, run.returncode, "--api-key", "--no-auth")
    assert run.returncode in (1, 2)
    (tmp_path / "keys").write_text("\n\n")
    assert_refused(octavo("serve", "smollm2", "--api-key-file", tmp_path / "keys"), 2, "--api-key-file")
    assert_refused(octavo("serve", "smollm2", "--api-key-file", tmp_path / "none"), 1, "--api-key-file")


def test_a_port_in_use_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert_refused(octavo("serve", "smollm2", "--port", port), 1, str(port))
