"""octavo bench of the claims: equal outputs, the right keys and counts; never how fast."""

import json

from conftest import ROOT, assert_refused, octavo

TINY = str(ROOT / "tests/golden/tiny/llama")
GAIN = {"median", "least", "most"}


def told(name, *args):
    run = octavo("bench", name, TINY, *args, "--json", "--threads", 1, seconds=300)
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    assert report["bench"] == name and report["machine"]["cpu"] and report["threads"] == 1
    return report


def sides(report):
    return {row["side"]: row for row in report["results"]}


def check_side(row):
    assert 0 < row["tokens_per_s"] <= row["tokens_per_s_best"], row
    assert 0 < row["mean_latency_ms_best"] <= row["mean_latency_ms"], row
    assert row["machine_share"] > 0 and row["steps"] > 0 and row["output_tokens"] > 0, row


def test_the_cache_saves_computing_and_changes_no_token():
    report = told("kv-cache", "--prompt", 3, "--lengths", "2,9", "--repeats", 2)
    assert [row["tokens"] for row in report["results"]] == [2, 9]
    for row in report["results"]:
        cached, naive = row["sides"]
        assert row["outputs_equal"] and set(row["gain"]) == GAIN
        assert cached["computed_tokens"] == 3 + row["tokens"] - 1
        assert naive["computed_tokens"] == sum(3 + i for i in range(row["tokens"]))
        check_side(cached), check_side(naive)


def test_static_batches_take_more_steps():
    report = told("batching", "--workload", "prompt:4;output:p50=4,p90=16", "--requests", 9, "--max-num-seqs", 3,
                  "--repeats", 1)
    by = sides(report)
    assert report["outputs_equal"] and report["requests"] == 9 and report["max_num_seqs"] == 3
    assert by["static"]["steps"] > by["continuous"]["steps"]
    assert by["static"]["output_tokens"] == by["continuous"]["output_tokens"]
    assert set(report["throughput_gain"]) == set(report["latency_gain"]) == GAIN
    check_side(by["static"]), check_side(by["continuous"])


def test_paged_memory_runs_more_at_once_and_wastes_less():
    report = told("memory", "--workload", "prompt:4;output:p50=6,p90=50", "--requests", 12, "--pool-tokens", 128,
                  "--max-model-len", 64, "--repeats", 1)
    by = sides(report)
    assert set(by) == {"static", "dynamic", "paged"} and report["outputs_equal"]
    assert by["static"]["peak_running"] <= 2 < by["paged"]["peak_running"]
    assert by["paged"]["waste"] < by["static"]["waste"] < 1
    assert all(0 < row["used_bytes"] <= row["reserved_bytes"] <= report["pool_bytes"] for row in by.values())


def test_a_prefix_that_is_found_is_not_computed():
    report = told("prefix", "--prefix", 32, "--tail", 3, "--tokens", 4, "--requests", 3, "--repeats", 1)
    by = sides(report)
    for mode in ("one_at_a_time", "all_at_once"):
        cold, hit = by["cold"][mode], by["hit"][mode]
        assert cold["cached_tokens"] == 0 and hit["cached_tokens"] == 3 * 32
        assert cold["computed_tokens"] - hit["computed_tokens"] == 3 * 32
        check_side(cold), check_side(hit)
    assert report["outputs_equal"] and set(report["ttft_gain"]) == GAIN


def test_preempted_requests_give_the_same_tokens():
    report = told("preemption", "--workload", "prompt:16;output:30", "--requests", 6, "--pool-tokens", 128,
                  "--no-prefix-caching", "--repeats", 1)
    by = sides(report)
    assert set(by) == {"recompute", "swap", "room for all"} and report["outputs_equal"]
    assert by["room for all"]["preemptions"] == by["room for all"]["computed_again"] == 0
    assert by["recompute"]["preemptions"] > by["recompute"]["preemptions_swap"] == 0
    assert by["recompute"]["computed_again"] > 0
    assert by["swap"]["preemptions_swap"] > 0
    assert by["swap"]["computed_again"] < by["recompute"]["computed_again"]


def test_fewer_kv_heads_keep_fewer_bytes():
    report = told("attention", "--kv-heads", "4,2,1", "--depths", "32", "--repeats", 1)
    rows = report["results"]
    assert [row["kv_heads"] for row in rows] == [4, 2, 1]
    assert [row["kv_share"] for row in rows] == [1, .5, .25]
    assert all(row["heads"] == rows[0]["heads"] and row["decode_us"] > 0 and row["prefill_us"] > 0 for row in rows)
    assert all(row["kv_bytes_per_token"] == row["kv_bytes_per_token_layer"] * report["layers"] for row in rows)
    assert_refused(octavo("bench", "attention", TINY, "--kv-heads", "3"), 2, "--kv-heads 3", "4 query heads")


def test_the_frontier_has_every_point_and_marks_those_not_beaten():
    report = told("frontier", "--workload", "prompt:8;output:4", "--requests", 5, "--budgets", "4,16", "--concurrency",
                  "1,3")
    points = report["results"]
    assert [(p["max_num_batched_tokens"], p["concurrency"]) for p in points] == [(4, 1), (4, 3), (16, 1), (16, 3)]
    assert report["outputs_equal"] and any(p["pareto"] for p in points)
    best = max(points, key=lambda p: p["tokens_per_s"])
    assert best["pareto"]
    for p in points:
        assert 0 < p["ttft_ms_p50"] <= p["ttft_ms_p99"] and 0 < p["tpot_ms_p50"] <= p["tpot_ms_p99"], p


def test_what_contradicts_a_bench_is_refused():
    assert_refused(octavo("bench", "kv-cache", TINY, "--no-kv-cache"), 2, "--no-kv-cache", "kv-cache", "leave it out")
    assert_refused(octavo("bench", "memory", TINY, "--kv-bytes", "1MiB"), 2, "--kv-bytes")
    assert_refused(octavo("bench", "batching", TINY, "--batching", "static"), 2, "--batching")
    assert_refused(octavo("bench", "memory", TINY, "--workload", "prompt:8;output:40", "--pool-tokens", 32), 2,
                   "--pool-tokens 32", "48 tokens")
    assert_refused(octavo("bench", "preemption", TINY, "--workload", "prompt:4;output:4", "--requests", 2), 2,
                   "--pool-tokens", "2 requests")
    assert_refused(octavo("bench", "frontier", TINY, "--budgets", "4", "--concurrency", "8"), 2, "--budgets 4", "8")
    assert_refused(octavo("bench", "batching", TINY, "--workload", "nonsense"), 1, "nonsense")


def test_a_report_that_cannot_be_written_is_refused_at_once():
    assert_refused(octavo("bench", "all", TINY, "--html", "/nonexistent/x.html"), 1, "/nonexistent/x.html")
