"""octavo bench serve: its figures against the repository's own server, its patience with broken ones."""

import contextlib
import http.server
import json
import threading
import time

import pytest
from conftest import PROGRESS, assert_refused, octavo
from test_serve import Serving

LENGTHS = "prompt:p50=40,p90=80;output:8"


def load(url, *args, workload=LENGTHS):
    run = octavo("bench", "serve", "--url", url, "--workload", workload, "--json", *args)
    assert run.stdout, run.stderr
    return json.loads(run.stdout), run


def told(run):
    """What stderr says beside what a busy machine makes it say."""
    return [line for line in run.stderr.splitlines() if not PROGRESS.fullmatch(line) and " ms late: " not in line]


@pytest.fixture(scope="module")
def server():
    with Serving("smollm2") as running:
        yield running


@pytest.mark.parametrize("how", [["--rate", "20"], ["--concurrency", "3"], ["--rate", "inf", "--text"]])
def test_every_request_is_answered_and_counted(server, tmp_path, how):
    saved = tmp_path / "figures.json"
    figures, run = load(server.url, "--requests", 12, "--ignore-eos", "--save", saved, *how)
    assert run.returncode == 0 and told(run) == [], run.stderr
    assert figures["completed"] == 12 and figures["failed"] == 0 and figures["error_counts"] == {}
    assert figures["total_output_tokens"] == 12 * 8 and figures["short_outputs"] == 0
    assert figures["model_id"] == "smollm2" and figures["request_goodput"] is None
    seconds = figures["duration"]
    assert figures["request_throughput"] == pytest.approx(12 / seconds)
    assert figures["output_throughput"] == pytest.approx(96 / seconds)
    assert figures["total_token_throughput"] == pytest.approx((96 + figures["total_input_tokens"]) / seconds)
    for name in ("ttft", "tpot", "itl", "e2el"):
        assert 0 < figures[f"median_{name}_ms"] <= figures[f"p99_{name}_ms"], name
    details = json.loads(saved.read_text())
    assert details["completed"] == 12 and details["errors"] == [""] * 12 and details["output_lens"] == [8] * 12
    assert sum(details["input_lens"]) == figures["total_input_tokens"]
    assert all(len(gaps) == 7 for gaps in details["itls"]) or "--text" in how
    assert all(0 < first <= last for first, last in zip(details["ttfts"], details["e2els"]))


def test_prompts_have_the_lengths_of_the_workload_and_share_its_prefixes(server, tmp_path):
    trace, saved = tmp_path / "trace.jsonl", tmp_path / "figures.json"
    rows = [{"timestamp": 100 * i, "input_length": 520 + i, "output_length": 2, "hash_ids": [1, 10 + i]} for i in range(4)]
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows))
    figures, _ = load(server.url, "--save", saved, "--seed", 77, workload=trace)
    assert json.loads(saved.read_text())["input_lens"] == [520, 521, 522, 523]
    assert figures["workload"].startswith("trace.jsonl, ")
    assert "hit" not in figures  # what hits is the server's to tell
    hits = metrics(server.url)["vllm:prefix_cache_hits_total"]
    assert hits >= 3 * 512


def metrics(url):
    import urllib.request
    text = urllib.request.urlopen(url + "/metrics", timeout=30).read().decode()
    return {line.split("{")[0].split(" ")[0]: float(line.split()[-1]) for line in text.splitlines() if line[:1] != "#"}


def test_the_table_names_the_figures(server):
    run = octavo("bench", "serve", "--url", server.url + "/v1/", "--workload", LENGTHS, "--requests", 3, "--concurrency", 1,
                 "--goal", "ttft=100000,e2e=100000")
    assert run.returncode == 0, run.stderr
    for word in ("3 of 3 requests", "goodput", "100.0 % of all", "output tok/s", "TTFT", "TPOT", "ITL", "E2EL", "p99"):
        assert word in run.stdout, run.stdout


def chunk(text):
    return f"{len(text):x}\r\n{text}\r\n".encode()


TOKEN = 'data: {"choices":[{"text":"a"}]}\n\n'
WHOLE = [TOKEN, 'data: {"choices":[{"text":"b","finish_reason":"length"}]}\n\n', "data: [DONE]\n\n"]


class Broken(http.server.BaseHTTPRequestHandler):
    """Answers as `behaviour` of its server says, by the number of the request."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            number, self.server.count = self.server.count, self.server.count + 1
            self.server.bodies.append((body, self.headers))
        self.server.behaviour(self, number)

    def refuse(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def stream(self, events, end=True):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            self.wfile.write(chunk(event))
            self.wfile.flush()
        if end:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True


@contextlib.contextmanager
def broken(behaviour):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Broken)
    server.behaviour, server.lock, server.count, server.bodies, server.over = behaviour, threading.Lock(), 0, [], False
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield server
    finally:
        server.over = True
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("fault,message", [
    (lambda h: h.refuse(500, '{"error":{"message":"out of luck"}}'), "HTTP 500: out of luck"),
    (lambda h: h.refuse(429, "slow down"), "HTTP 429: slow down"),
    (lambda h: h.refuse(302, "elsewhere"), "HTTP 302: elsewhere"),
    (lambda h: h.stream([TOKEN], end=False), ""),  # libcurl's words
    (lambda h: h.stream([TOKEN]), "the stream ended in the middle of the answer"),
    (lambda h: h.stream([TOKEN, 'data: {"error":{"message":"engine died"}}\n\n']), "engine died"),
    (lambda h: h.stream([TOKEN, "data: <html>\n\n"]), "an event is no JSON object: <html>"),
    (lambda h: h.stream(["data: [DONE]\n\n"]), "an answer without a token"),
    (lambda h: setattr(h, "close_connection", True), ""),
])
def test_broken_answers_are_errors_beside_whole_ones(fault, message):
    with broken(lambda handler, number: handler.stream(WHOLE) if number % 2 else fault(handler)) as server:
        figures, run = load(server.url, "--model", "m", "--requests", 8, "--concurrency", 1)
    assert run.returncode == 0
    # libcurl may send a request once more whose kept connection was closed unanswered.
    assert figures["completed"] >= 4 and figures["completed"] + figures["failed"] == 8
    assert sum(figures["error_counts"].values()) == figures["failed"]
    if message:
        assert figures["error_counts"] == {message: 4}
    for text in figures["error_counts"]:
        assert text in run.stderr
    assert figures["total_output_tokens"] == 2 * figures["completed"]


def test_many_kinds_of_errors_are_told_in_few_lines():
    with broken(lambda handler, number: handler.refuse(400, f"number {number // 2}")) as server:
        figures, run = load(server.url, "--model", "m", "--requests", 20, "--concurrency", 1)
    assert run.returncode == 1 and len(figures["error_counts"]) == 10
    lines = told(run)
    assert len(lines) == 7 and "and 5 other messages" in lines[5] and "no request was answered" in lines[6], lines


def test_a_server_that_says_nothing_is_given_up():
    def stall(handler, number):
        if number == 0:
            handler.stream([TOKEN], end=False)
        while not handler.server.over:
            time.sleep(.05)

    with broken(stall) as server:
        figures, run = load(server.url, "--model", "m", "--requests", 3, "--rate", "inf", "--timeout", 2)
    assert run.returncode == 1 and figures["failed"] == 3 and "no request was answered" in run.stderr


def test_in_an_open_loop_nobody_waits_for_answers(tmp_path):
    all_are_there = threading.Event()

    def patient(handler, number):
        if number == 9:
            all_are_there.set()
        if all_are_there.wait(60):  # nobody is answered before the last has asked
            handler.stream(WHOLE)
        else:
            handler.refuse(500, "some never came")

    saved = tmp_path / "figures.json"
    with broken(patient) as server:
        figures, run = load(server.url, "--model", "m", "--requests", 10, "--rate", 20, "--save", saved, "--api-key", "secret")
        bodies = server.bodies
    assert run.returncode == 0 and figures["completed"] == 10, run.stderr
    times = json.loads(saved.read_text())["start_times"]
    assert times == sorted(times)
    body, headers = bodies[0]
    assert headers["Authorization"] == "Bearer secret" and body["model"] == "m" and body["stream"] is True
    assert body["max_tokens"] == 8 and all(100 <= token < 1000 for token in body["prompt"]) and "ignore_eos" not in body


def test_a_closed_loop_holds_its_number():
    running, most = [0], [0]

    def counted(handler, _):
        with handler.server.lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(.1)
        with handler.server.lock:
            running[0] -= 1
        handler.stream(WHOLE)

    with broken(counted) as server:
        figures, _ = load(server.url, "--model", "m", "--requests", 30, "--concurrency", 20, "--ignore-eos")
        bodies = server.bodies
    assert figures["completed"] == 30 and 2 <= most[0] <= 20
    assert all(body["ignore_eos"] is True for body, _ in bodies)
    assert figures["short_outputs"] == 30  # two tokens each, eight were asked for


def test_nobody_there_is_said():
    assert_refused(octavo("bench", "serve", "--url", "http://127.0.0.1:1", "--rate", 1), 1, "127.0.0.1:1/v1/models", "onnect")
    figures, run = load("http://127.0.0.1:1", "--model", "m", "--rate", 1000, "--requests", 5)
    assert run.returncode == 1 and figures["failed"] == 5 and figures["completed"] == 0
    assert "5 requests failed: Couldn't connect" in run.stderr


@pytest.mark.parametrize("args,words", [
    (["--url", "ftp://x", "--rate", "1"], ["--url", "ftp://x"]),
    (["--url", "http://", "--rate", "1"], ["--url"]),
    (["--rate", "0"], ["--rate 0"]),
    (["--rate", "nan"], ["--rate nan"]),
    (["--rate", "x"], ["--rate"]),
    (["--rate", "1", "--concurrency", "2"], ["--concurrency", "--rate"]),
    (["--rate", "1", "--goal", "ttft=x"], ["--goal", "ttft=x"]),
    (["--rate", "1", "--vocab", "3"], ["--vocab"]),
    (["--rate", "1", "--timeout", "0"], ["--timeout"]),
    (["--workload", "prompt:p200=3,p90=4;output:1", "--rate", "1"], ["--workload", "p200"]),
    ([], ["sharegpt", "--rate"]),
])
def test_wrong_use_is_refused(args, words):
    assert_refused(octavo("bench", "serve", *args), 2, *words)


def test_what_cannot_be_saved_is_said_before_the_load(tmp_path):
    run = octavo("bench", "serve", "--rate", 1, "--model", "m", "--save", tmp_path / "no" / "file.json")
    assert_refused(run, 1, "--save", "file.json")
    assert_refused(octavo("bench", "serve", "--workload", "nobody.csv"), 1, "nobody.csv", "azure-code")
