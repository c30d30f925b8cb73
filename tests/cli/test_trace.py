"""--trace FILE, and octavo trace on what it wrote."""

import json
import os
import subprocess

from conftest import assert_refused, octavo


def test_a_run_is_traced_and_summed_up(tmp_path):
    prompts, trace, chrome = tmp_path / "prompts.jsonl", tmp_path / "trace.jsonl", tmp_path / "chrome.json"
    prompts.write_text("".join(json.dumps({"ids": list(range(40)), "max_tokens": 5, "ignore_eos": True}) + "\n"
                               for _ in range(3)))
    run = octavo("generate", "--prompts", str(prompts), "--trace", str(trace))
    assert run.returncode == 0, run.stderr
    usages = [line["usage"] for line in map(json.loads, run.stdout.splitlines())]
    cached = sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in usages)

    summed = octavo("trace", str(trace), "--json", "--chrome", str(chrome))
    assert summed.returncode == 0, summed.stderr
    summary = json.loads(summed.stdout)
    assert summary["arrived"] == 3 and summary["finished"] == {"length": 3}
    assert summary["sampled_tokens"] == 15 and summary["lost"] == 0 and summary["closed"]
    assert summary["prompt_tokens"] == 120 - cached and summary["cached_tokens"] == cached > 0
    assert summary["kv_events"]["stored"] > 0
    events = json.loads(chrome.read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == summary["steps"]
    assert sum(event["ph"] == "b" for event in events) == sum(event["ph"] == "e" for event in events) == 3 * 4

    text = octavo("trace", str(trace))
    assert text.returncode == 0 and "15 sampled" in text.stdout


def test_what_is_no_trace_is_refused(tmp_path):
    assert_refused(octavo("trace", str(tmp_path / "none")), 1, "none")
    assert_refused(octavo("trace", str(tmp_path)), 1, str(tmp_path))
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text('{"octavo_trace":1}\n{"step":"one"}\n')
    assert_refused(octavo("trace", str(wrong)), 1, "wrong.jsonl:2:", "'step'")
    assert_refused(octavo("generate", "--trace", "/nonexistent/t.jsonl", "hi"), 2, "/nonexistent/t.jsonl")


def test_a_trace_that_was_cut_off_is_summed_up_as_far_as_it_goes(tmp_path):
    trace, chrome = tmp_path / "trace.jsonl", tmp_path / "chrome.json"
    assert octavo("generate", "--trace", str(trace), "--max-tokens", "8", "hi").returncode == 0
    whole = trace.read_bytes()
    trace.write_bytes(whole[:len(whole) * 2 // 3 // 10 * 10 - whole[:len(whole) * 2 // 3 // 10 * 10].endswith(b"\n")])
    summed = octavo("trace", str(trace), "--chrome", str(chrome))
    assert summed.returncode == 0 and "was cut off" in summed.stdout
    assert json.loads(chrome.read_text())["traceEvents"]


def test_a_trace_is_not_overwritten_by_its_own_chrome_trace(tmp_path):
    trace = tmp_path / "trace.jsonl"
    assert octavo("generate", "--trace", str(trace), "--max-tokens", "2", "hi").returncode == 0
    before = trace.read_bytes()
    assert_refused(octavo("trace", str(trace), "--chrome", str(trace)), 2, "the trace itself")
    assert trace.read_bytes() == before


def test_a_file_as_long_as_it_may_be_costs_records_only(tmp_path):
    trace = tmp_path / "trace.jsonl"
    command = f"ulimit -f 4; exec {os.environ['OCTAVO_BIN']} generate smollm2 --trace {trace} --max-tokens 60 --ignore-eos hi"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0 and run.stdout, run.stderr
    assert "trace records are lost" in run.stderr
