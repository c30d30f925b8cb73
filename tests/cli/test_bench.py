"""octavo bench kv, and the load script against a real server: that it measures what it says, not how fast."""

import asyncio
import json
import subprocess
import sys

import pytest
from conftest import ROOT, assert_refused, octavo
from test_serve import Serving

sys.path.insert(0, str(ROOT / "bench"))
import serving_cases  # noqa: E402
import serving_client  # noqa: E402


def bench_kv(*args):
    run = octavo("bench", "kv", "--json", *args)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_kv_tells_every_strategy_and_every_cost():
    report = bench_kv("--requests", 200, "--running", "2,4")
    assert [(row["strategy"], row["block_tokens"]) for row in report["waste"]] == [
        ("paged", 16), ("paged", 256), ("dynamic", 16), ("static", 16)]
    assert all(row["requests_done"] == 200 for row in report["waste"])
    assert report["waste"][0]["internal_waste"] <= 0.01 and report["kv_bytes_per_token"] == 131072
    assert [(row["running"], row["prefix_caching"]) for row in report["cost"]] == [
        (2, False), (2, True), (4, False), (4, True)]


def test_kv_takes_the_shape_of_a_model():
    assert bench_kv("smollm2", "--requests", 0, "--running", 1)["kv_bytes_per_token"] == 23040
    assert_refused(octavo("bench", "kv", "smollm2", "--kv-bytes", "1MiB"), 2, "--kv-bytes", "1048576", "15104")


def test_percentiles_lie_between_ranks():
    assert serving_cases.percentile([4, 1, 2, 3], .5) == 2.5
    assert serving_cases.percentile([7], .99) == 7
    assert serving_cases.percentile(range(101), .99) == 99


def test_events_are_cut_at_lines_whatever_the_chunks():
    text = b'data: {"a": 1}\n\n: silence\n\ndata: {"b": 2}\r\n\r\nerror: {"message": "c"}\n\ndata: [DONE]\n\n'

    async def cut(size):
        async def chunks():
            for at in range(0, len(text), size):
                yield text[at:at + size]
        return [event async for event in serving_client.events(chunks())]

    for size in (1, 7, len(text)):
        assert asyncio.run(cut(size)) == [{"a": 1}, {"b": 2}, {"error": {"message": "c"}}, serving_client.DONE]


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    file = tmp_path_factory.mktemp("serving") / "figures.json"
    with Serving("smollm2", "--policy", "priority", "--max-num-seqs", "2") as server:
        run = subprocess.run([sys.executable, ROOT / "bench/compare_serving.py", "--url", server.url, "--small",
                              "--json", file], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return {case: next(iter(by_server.values()))[0] for case, by_server in json.loads(file.read_text())["results"].items()}


def test_every_request_of_every_case_is_answered(figures):
    assert set(figures) == set(serving_cases.CASES)
    for case, told in figures.items():
        assert not any(value for key, value in told.items() if key.endswith("errors")), (case, told)
    assert figures["tiny-pool"]["finished_whole"] == serving_cases.SMALL.pool_requests
    assert figures["mixed"]["requests"] == serving_cases.SMALL.mixed_requests


def test_counts_are_the_servers(figures):
    sizes, told = serving_cases.SMALL, figures["shared-prefix"]
    asked = sizes.clients_sharing * (sizes.prefix + sizes.tail)
    for name in ("together", "in_turn"):
        assert told[f"{name}_prompt_tokens"] == asked
        assert told["least_possible"] <= told[f"{name}_computed"] <= asked
        assert told[f"{name}_computed"] == asked - told[f"{name}_prompt_tokens_cached_total"]


def test_the_urgent_request_overtakes_all_that_had_not_started(figures):
    told = figures["priority"]
    assert told["overtaken"] == told["not_started"] == serving_cases.SMALL.queued - serving_cases.SMALL.seats
