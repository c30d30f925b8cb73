"""--trace FILE, and octavo trace on what it wrote."""

import json

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
