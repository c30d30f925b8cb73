"""octavo probe, octavo bench and the comparing scripts: that they measure what they say, not how fast."""

import asyncio
import json
import subprocess
import sys
import textwrap

import pytest
from conftest import OCTAVO, ROOT, assert_refused, octavo
from machine_profile import some_profile
from test_serve import Serving

sys.path.insert(0, str(ROOT / "bench"))
import compare_llama  # noqa: E402
import serving_cases  # noqa: E402
import serving_client  # noqa: E402


def told(*args):
    run = octavo(*args, "--json", seconds=600)  # bursts wait for their turn on a busy machine
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def bench_kv(*args):
    return told("bench", "kv", *args)


def test_probe_tells_peaks_bandwidth_and_regions():
    report = told("probe", "--threads", 2, "--working-set", "64KiB,2MiB")
    for kind in ("int8", "bf16", "f32"):
        peak = report[kind]
        assert 0 < peak["gops_one_median"] <= peak["gops_one"] and 0 < peak["gops_all_median"] <= peak["gops_all"], kind
    assert [(row["working_set_bytes"], row["threads"]) for row in report["read"]] == [
        (64 << 10, 1), (64 << 10, 2), (2 << 20, 1), (2 << 20, 2)]
    assert all(0 < row["gbytes_per_s_median"] <= row["gbytes_per_s"] for row in report["read"])
    for region in ("empty_region_us", "joined_region_us"):
        assert 0 < report[region]["min"] <= report[region]["median"], region
    assert "int8" in octavo("probe", "--threads", 1, "--working-set", "1MiB").stdout
    assert_refused(octavo("probe", "--working-set", "1TiB"), 1, "--working-set", "MiB available")


def test_probe_keeps_a_profile_of_a_model(tmp_path):
    path = some_profile(tmp_path / "machine.json")
    tiny = ROOT / "tests/golden/tiny/llama"
    for _ in range(2):  # the second takes the place of the first
        report = told("probe", "--save", "--model", tiny, "--output", path, "--threads", 2)
        assert report["machine"] == str(path) and len(report["models"]) == 1
    profile = json.loads(path.read_text())
    assert profile["cpu"] == "a CPU"  # its own part is left as it is
    steps = profile["models"][0]["steps"]
    assert steps["tokens"][0] == 1 and steps["tokens"] == sorted(steps["tokens"]) and min(steps["ns"]) >= 0
    assert steps["logit_rows"][0] == 1 and steps["step_ns"] > 0
    path.write_text("{}")
    assert_refused(octavo("probe", "--save", "--model", tiny, "--output", path), 1, str(path), "octavo_machine_profile")
    assert_refused(octavo("probe", "--model", tiny), 2, "--model", "--save")


def test_bench_tells_speed_beside_its_limits():
    decode = told("bench", "decode", "smollm2", "--tokens", 4, "--depths", "0,32", "--repeats", 2, "--threads", 2)
    assert [(row["test"], row["tokens"], row["depth"], row["streams"]) for row in decode["results"]] == [
        ("decode", 4, 0, 1), ("decode", 4, 32, 1)]
    prefill = told("bench", "prefill", "smollm2", "--tokens", 16, "--depths", "0,64", "--repeats", 1)
    assert [(row["test"], row["tokens"], row["depth"]) for row in prefill["results"]] == [
        ("prefill", 16, 0), ("prefill", 16, 64)]
    batched = told("bench", "batched", "smollm2", "--tokens", 4, "--streams", "2,3", "--repeats", 1)
    assert [row["streams"] for row in batched["results"]] == [2, 3]
    for row in decode["results"] + prefill["results"] + batched["results"]:
        assert 0 < row["tokens_per_s"] <= row["tokens_per_s_best"], row
        assert row["compute_share"] > 0 and row["read_share"] > 0 and row["tokens_per_s_limit"] > 0, row
    one = told("bench", "decode", "smollm2", "--tokens", 4, "--depths", "0,32", "--repeats", 2, "--threads", 1)
    assert [row["output_hash"] for row in one["results"]] == [row["output_hash"] for row in decode["results"]]


def test_what_has_no_room_is_said_and_left_out():
    run = octavo("bench", "decode", "smollm2", "--tokens", 2, "--depths", "0,100000", "--repeats", 1)
    assert run.returncode == 0 and "depth 100000" in run.stderr and "100000" not in run.stdout
    assert_refused(octavo("bench", "decode", "smollm2", "--depths", "100000", "--max-model-len", 128), 1)
    assert_refused(octavo("bench", "prefill", "smollm2", "--depths", "64", "--no-prefix-caching"), 2, "--depths")


def test_kernels_are_told_by_format_shape_and_filter():
    report = told("bench", "kernels", "--formats", "Q4_K,BF16", "--rows", "1,3", "--outputs", 64, "--inputs", 256,
                  "--head-dims", "80", "--groups", "3", "--depths", "40,600", "--vocab", 1000, "--threads", 2)
    assert [(row["format"], row["rows"]) for row in report["gemm"]] == [
        ("Q4_K", 1), ("Q4_K", 3), ("BF16", 1), ("BF16", 3)]
    assert [(row["head_dim"], row["group"], row["depth"], row["queries"]) for row in report["attention"]] == [
        (80, 3, 40, 1), (80, 3, 40, 16), (80, 3, 600, 1), (80, 3, 600, 16)]
    assert {"greedy", "top-k 40", "top-p 0.95", "min-p 0.05"} <= {row["what"] for row in report["sampling"]}
    for row in report["gemm"] + report["attention"] + report["sampling"]:
        assert 0 < row["min_us"] <= row["median_us"], row
    assert all(row["peak_share"] > 0 and row["read_share"] > 0 for row in report["gemm"] + report["attention"])
    only = told("bench", "kernels", "--only", "sampling", "--vocab", 500)
    assert only["gemm"] == only["attention"] == [] and only["sampling"]


def fake_peer(folder, name, help_text, body):
    path = folder / name
    path.write_text("#!/usr/bin/env python3\nimport sys\nif '--help' in sys.argv:\n"
                    f"    print({help_text!r})\n    sys.exit()\n" + textwrap.dedent(body))
    path.chmod(0o755)
    return path


def test_peers_are_asked_in_their_own_words_and_their_best_counts(tmp_path):
    llama = fake_peer(tmp_path, "llama-bench", "  -d, --n-depth <n>\n  -fa, --flash-attn <on|off|auto>", """
        import json
        value = dict(zip(sys.argv[1::2], sys.argv[2::2]))
        speed = 10.0 if value["-fa"] == "on" else 5.0
        tests = [(int(value["-p"]), 0), (0, int(value["-n"]))]
        print(json.dumps([dict(build_commit="abc", build_number=1, cpu_info="a CPU", n_threads=2, type_k="f16",
              type_v="f16", n_prompt=p, n_gen=n, n_depth=int(value.get("-d", 0)), samples_ts=[speed, speed + 1])
              for p, n in tests if p + n > 0]))
        """)
    ik = fake_peer(tmp_path, "ik-bench", "  -gp <pp,tg>\n  -fa <0|1>\n  -rtr <0|1>", """
        import json
        value = dict(zip(sys.argv[1::2], sys.argv[2::2]))
        speed = 20.0 + 2 * int(value["-fa"]) + int(value.get("-rtr", 0))
        tests = [(int(value["-p"]), 0), (0, int(value["-n"]))]
        if "-gp" in value:
            tests.append(tuple(map(int, value["-gp"].split(","))))
        print(json.dumps([dict(build_commit="def", build_number=2, cpu_info="a CPU", n_threads=2, type_k="f16",
              type_v="f16", n_prompt=p, n_gen=n, samples_ts=[speed]) for p, n in tests if p + n > 0]))
        """)
    batched = fake_peer(tmp_path, "batched-bench", "-fa, --flash-attn [on|off|auto]", """
        print("|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |")
        print("|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|")
        print("|     1 |      4 |    2 |     10 |    0.100 |    20.00 |    0.100 |    80.00 |    0.200 |    50.00 |")
        """)
    file = tmp_path / "figures.json"
    run = subprocess.run([sys.executable, ROOT / "bench/compare_llama.py", "--octavo", OCTAVO, "--peer", f"llama={llama}",
                          "--peer", f"ik={ik}", "--batched", f"llama={batched}", "--prefill", "16", "--decode", "4",
                          "--depths", "32", "--streams", "2", "--rounds", "2", "--repeats", "1", "--json", file,
                          "smollm2"], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    (told,) = json.loads(file.read_text())["models"].values()
    tests = {name: {(row["test"], row["depth"], row["streams"]): row["variants"] for row in rows}
             for name, rows in told["rates"].items()}
    one_stream = {("prefill", 0, 1), ("decode", 0, 1), ("decode", 32, 1)}
    assert set(tests["octavo"]) == set(tests["llama"]) == one_stream | {("decode", 0, 2)}
    assert set(tests["ik"]) == one_stream
    assert compare_llama.best_of(tests["llama"]["decode", 32, 1]) == (11, 10.5, "-fa on")
    assert compare_llama.best_of(tests["ik"]["decode", 32, 1]) == (23, 23, "-fa 1 -rtr 1")
    assert tests["llama"]["decode", 0, 2]["-fa on"] == [[80, 80], [80, 80]]
    assert "commit abc" in run.stdout and "commit def" in run.stdout and "of medians" in run.stdout


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
