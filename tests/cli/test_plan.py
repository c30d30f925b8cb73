"""octavo plan from outside: the facts, the numbers behind a plan, what does not fit, and bad input."""

import json

import pytest

from conftest import ROOT, assert_refused, octavo
from machine_profile import some_profile

GIB = 1 << 30
TINY = ROOT / "tests/golden/tiny/llama"


def plan(*args):
    run = octavo("plan", *args, "--json")
    assert run.stdout, run.stderr
    return json.loads(run.stdout), run


@pytest.mark.parametrize("model, batch, length, gib", [
    ("llama-2-7b", 1, 4096, 2), ("llama-2-7b", 1, 2048, 1), ("llama-2-13b", 1, 2048, 1.5625),
    ("llama-65b", 1, 2048, 5), ("llama-2-70b", 32, 8192, 80)])
def test_published_models(model, batch, length, gib):
    answer, run = plan(model, "--batch", batch, "--length", length, "--kv-type", "f16", "--memory", "1TiB")
    assert run.returncode == 0, run.stderr
    assert answer["kv_bytes"] == gib * GIB
    assert answer["fits"] and answer["max_batch"] >= batch


def test_a_plan_adds_up():
    answer, run = plan("llama-2-7b", "--memory", "24GiB", "--kv-type", "f16", "--length", 4096)
    assert run.returncode == 0
    rest = sum(tag["bytes"] for tag in answer["tags"] if tag["tag"] not in ("kv pool", "swap"))
    assert answer["weights_bytes"] + answer["activations_bytes"] <= rest
    assert answer["max_batch"] == (24 * GIB - rest) // (2 * GIB)
    assert answer["bytes_per_token"] == 2 * 32 * 32 * 128 * 2
    assert answer["total_bytes"] == sum(tag["bytes"] for tag in answer["tags"]) <= 24 * GIB


def test_what_does_not_fit_is_told_and_fails():
    answer, run = plan("llama-2-70b", "--batch", 32, "--length", 8192, "--kv-type", "f16", "--memory", "200GiB")
    assert run.returncode == 1
    assert not answer["fits"] and answer["kv_bytes"] == 80 * GIB
    assert "does not fit" in run.stderr and "of memory" in run.stderr and "--batch" in run.stderr


def test_a_config_alone_and_a_model_that_does_not_run(tmp_path):
    of_config, _ = plan(TINY / "config.json", "--memory", "4GiB")
    of_model, _ = plan(TINY, "--memory", "4GiB")
    assert of_config["bytes_per_token"] == of_model["bytes_per_token"]
    latent, run = plan("deepseek-v3", "--memory", "2TiB", "--batch", 1, "--length", 1000)
    assert latent["kv_bytes"] == 70272 * 1000 and "deepseek_v3" in latent["unsupported"]
    assert run.returncode == 0, run.stderr


def test_windows_and_types():
    short, _ = plan("gemma-3-1b", "--memory", "32GiB", "--batch", 1, "--length", 512)
    long, _ = plan("gemma-3-1b", "--memory", "32GiB", "--batch", 1, "--length", 1024)
    assert long["kv_bytes"] < 2 * short["kv_bytes"]
    wide, _ = plan("gemma-3-1b", "--memory", "32GiB", "--batch", 1, "--length", 512, "--kv-type", "f32")
    assert wide["kv_bytes"] == 2 * short["kv_bytes"]


def test_text_and_explain():
    run = octavo("plan", "llama-2-70b", "--memory", "1TiB", "--batch", 32, "--length", 8192, "--kv-type", "f16")
    assert run.returncode == 0 and "80 GiB for 32 x 8,192 tokens" in run.stdout, run.stdout
    run = octavo("plan", "llama-2-70b", "--memory", "1TiB", "--batch", 32, "--length", 8192, "--explain")
    assert "2 x 80 x 8 x 128 x 2 = 327,680 bytes" in run.stdout


@pytest.mark.parametrize("args, words", [
    (["llama-2-7b", "--memory", "0"], "--memory 0"),
    (["llama-2-7b", "--memory", "lots"], "--memory"),
    (["llama-2-7b", "--batch", "0"], "--batch 0"),
    (["llama-2-7b", "--batch", "-1"], "--batch"),
    (["llama-2-7b", "--length", "0"], "--length 0"),
    (["llama-2-7b", "--length", "999999999"], "--length 999999999"),
    (["llama-2-7b", "--batch", "9", "--max-num-seqs", "8"], "--max-num-seqs"),
    (["llama-2-7b", "--length", "100", "--max-model-len", "50"], "--max-model-len 50"),
    (["llama-2-7b", "--max-model-len", "5000"], "--max-model-len 5000"),
    (["llama-2-7b", "--weights-format", "Q9"], "Q4_0"),
    (["llama-2-7b", "--kv-type", "int3"], "--kv-type"),
    ([str(TINY), "--weights-format", "Q4_0"], "--weights-format"),
])
def test_bad_questions(args, words):
    assert_refused(octavo("plan", *args), 2, words)


def test_unknown_names_get_the_list():
    assert_refused(octavo("plan", "llama-9"), 1, "llama-9", "llama-2-7b", "gemma-3-270m")


def test_broken_configs(tmp_path):
    config = tmp_path / "config.json"
    config.write_text("{")
    assert_refused(octavo("plan", config), 1, "config.json", "JSON")
    config.write_text(json.dumps({"model_type": "new", "num_hidden_layers": 2}))
    assert_refused(octavo("plan", config), 2, "hidden_size is missing")


def load(*args, model=TINY, machine):
    """A load on a machine that is only a file; the tiny model runs anywhere."""
    return octavo("plan", model, "--kv-bytes", "4MiB", "--memory", "2GiB", "--machine", machine, *args)


def test_a_load_is_simulated_alike_every_time(tmp_path):
    machine = some_profile(tmp_path / "machine.json")
    asked = ("--workload", "prompt:lognormal=3/0.5;output:10", "--rate", 5, "--requests", 50, "--goal", "ttft=1000")
    runs = [load(*asked, "--json", machine=machine) for _ in range(2)]
    assert runs[0].returncode == 0, runs[0].stderr
    assert runs[0].stdout == runs[1].stdout
    simulation = json.loads(runs[0].stdout)["load"]["simulation"]
    assert simulation["requests"] == 50 and simulation["turned_away"] == simulation["never_fit"] == 0
    assert simulation["output_tokens_per_s"] * simulation["seconds"] == pytest.approx(50 * 10)
    assert 0 < simulation["ttft_ms"]["p50"] <= simulation["ttft_ms"]["p99"] <= simulation["ttft_ms"]["max"]
    text = load(*asked, machine=machine)
    assert "TTFT, ms" in text.stdout and "composed from single kernels" in text.stdout


def test_what_if_search_and_page(tmp_path):
    machine = some_profile(tmp_path / "machine.json")
    page = tmp_path / "plan.html"
    run = load("--workload", "prompt:40;output:10", "--requests", 30, "--rate", 2, "--goal", "ttft=500",
               "--search-rate", "--what-if", "--html", page, "--json", machine=machine)
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout)["load"]
    assert answer["largest_rate"]["requests_per_s"] > 2 and answer["largest_rate"]["good_share"] >= 0.99
    changes = [row["change"] for row in answer["what_if"]]
    assert changes[0] == "as configured" and {"KV f32", "blocks of 256", "static batches", "static memory"} <= set(changes)
    html = page.read_text()
    assert "<svg" in html and "What if" in html and "http://" not in html.replace("http://www.w3.org", "")


def test_a_trace_that_never_fits_fails(tmp_path):
    machine = some_profile(tmp_path / "machine.json")
    trace = tmp_path / "trace.csv"
    trace.write_text("arrival,prompt,output\n0,10,5\n1,100000,5\n")
    run = load("--workload", trace, machine=machine)
    assert run.returncode == 1 and "1 of 2 requests never fit" in run.stderr, run.stderr


def test_a_load_is_checked_for_real(tmp_path):
    machine = some_profile(tmp_path / "machine.json")
    assert octavo("probe", "--save", "--model", TINY, "--output", machine).returncode == 0
    page = tmp_path / "check.html"
    run = load("--workload", "prompt:20;output:8", "--requests", 20, "--check", "--html", page, "--json", machine=machine)
    assert run.returncode == 0, run.stderr
    check = json.loads(run.stdout)["check"]
    assert check["steps_measured_on_model"] and len(check["levels"]) == 3
    for level in check["levels"]:
        assert level["answered"] == 20 and level["refused"] == 0
        names = {figure["name"]: figure for figure in level["figures"]}
        assert {"KV peak, bytes", "RSS peak, bytes", "output tok/s", "TTFT p99, ms", "TPOT p99, ms"} <= set(names)
        assert all(figure["measured"] > 0 for figure in names.values())
    assert "Predicted and measured" in page.read_text()


def test_bad_loads_are_refused(tmp_path):
    machine = some_profile(tmp_path / "machine.json")
    assert_refused(octavo("plan", TINY, "--check"), 2, "--check", "--workload")
    assert_refused(octavo("plan", TINY, "--what-if"), 2, "--what-if", "--workload")
    simple = ("--workload", "prompt:20;output:8")
    assert_refused(load(*simple, "--rate", 1, "--goal", "ttft=-3", machine=machine), 2, "--goal", "ttft=-3")
    assert_refused(load(*simple, machine=machine), 2, "--rate")
    assert_refused(load(*simple, "--rate", 1, "--search-rate", machine=machine), 2, "--goal")
    assert_refused(load(*simple, "--rate", 1, machine=tmp_path / "none.json"), 1, "none.json", "octavo probe --save")
    assert_refused(load("--workload", "prompt:20", "--rate", 1, machine=machine), 2, "output")
    deepseek = octavo("plan", "deepseek-v3", "--memory", "2TiB", *simple, "--rate", 1, "--machine", machine)
    assert deepseek.returncode == 1 and "deepseek" in deepseek.stderr
