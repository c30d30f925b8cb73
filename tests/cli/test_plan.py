"""octavo plan from outside: the facts, the numbers behind a plan, what does not fit, and bad input."""

import json

import pytest

from conftest import ROOT, assert_refused, octavo

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
