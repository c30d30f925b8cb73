"""The command line from outside: help, bad input, generation, scores."""

import json
import subprocess

import pytest

from conftest import OCTAVO, assert_refused, json_lines, octavo

SUBCOMMANDS = ["generate", "chat", "serve", "inspect", "tokenize", "template", "score", "bench", "probe", "trace",
               "pack"]
LOADERS = [["generate", "--model", "{}", "hi"], ["chat", "{}"], ["serve", "{}", "--port", "0"], ["inspect", "{}"],
           ["tokenize", "{}", "hi"], ["score", "{}", "--jsonl"], ["bench", "{}", "--repeats", "1"], ["pack", "{}"]]


@pytest.mark.parametrize("sub", SUBCOMMANDS)
def test_help_and_version_everywhere(sub):
    help_run = octavo(sub, "--help")
    assert help_run.returncode == 0 and sub in help_run.stdout and help_run.stderr == ""
    assert octavo(sub, "--version").stdout.startswith("octavo ")
    assert sub in octavo("--help").stdout


@pytest.mark.parametrize("args, words", [
    ([], ["subcommand"]),
    (["frobnicate"], ["'frobnicate'", "--help"]),
    (["generate", "--no-such-flag", "hi"], ["--no-such-flag"]),
    (["generate", "--max-tokens", "-1", "hi"], ["--max-tokens"]),
    (["generate", "--max-tokens", "99999999999999999999", "hi"], ["--max-tokens"]),
    (["generate", "--seed", "-1", "hi"], ["--seed", "-1"]),
    (["generate", "--seed", "1.5", "hi"], ["--seed"]),
    (["generate", "--n", "0", "hi"], ["--n", "128"]),
    (["generate", "--max-num-seqs", "-3", "hi"], ["--max-num-seqs", "4096"]),
    (["generate", "--max-num-batched-tokens", "-1", "hi"], ["--max-num-batched-tokens", "auto"]),
    (["generate", "--max-num-batched-tokens", "fast", "hi"], ["--max-num-batched-tokens", "auto"]),
    (["generate", "--target-tpot-ms", "-1", "hi"], ["--target-tpot-ms"]),
    (["generate", "--kv-fraction", "nan", "hi"], ["--kv-fraction"]),
    (["generate", "--kv-memory", "swiss", "hi"], ["--kv-memory", "paged"]),
    (["generate", "--prefix-caching", "--no-prefix-caching", "hi"], ["--prefix-caching"]),
    (["generate", "--policy", "lifo", "hi"], ["--policy", "shortest"]),
    (["generate", "--swap-bytes", "lots", "hi"], ["--swap-bytes"]),
    (["generate", "--temperature", "nan", "hi"], ["--temperature"]),
    (["generate", "--temperature", "hot", "hi"], ["--temperature"]),
    (["generate", "--kv-type", "int3", "hi"], ["--kv-type"]),
    (["generate", "--kv-bytes", "many", "hi"], ["--kv-bytes", "GiB"]),
    (["generate", "--kv-bytes", "-5GiB", "hi"], ["--kv-bytes"]),
    (["generate", "--block-size", "17", "hi"], ["--block-size"]),
    (["generate", "--threads", "0", "hi"], ["--threads"]),
    (["generate", "--threads", "100000", "hi"], ["--threads"]),
    (["generate", "--numerics", "q4", "hi"], ["--numerics"]),
    (["generate", "a", "b", "c"], []),
    (["generate", "--prompts", "x.jsonl", "smollm2", "hi"], ["--prompts"]),
    (["serve", "--port", "70000"], ["--port"]),
    (["inspect"], ["MODEL"]),
    (["pack"], ["MODEL"]),
    (["pack", "smollm2", "--numerics", "q4"], ["--numerics"]),
    (["pack", "smollm2", "--cache-bytes", "lots"], ["lots", "GiB"]),
    (["generate", "--cache-bytes", "lots", "hi"], ["--cache-bytes"]),
    (["tokenize"], ["MODEL"]),
    (["template"], ["--jsonl"]),
    (["score", "smollm2"], ["--jsonl"]),
    (["bench", "batched", "--streams", "0"], ["--streams"]),
    (["bench", "--threads", "1", "decode", "smollm2"], ["--threads", "bench decode --threads"]),
    (["bench", "kernels", "--formats", "Q9_9"], ["--formats", "Q9_9", "Q4_K"]),
    (["bench", "kernels", "--inputs", "300"], ["--inputs", "256"]),
    (["bench", "kernels", "--head-dims", "72"], ["--head-dims", "16"]),
    (["probe", "--working-set", "12 parsecs"], ["--working-set", "parsecs"]),
    (["probe", "--working-set", "8"], ["--working-set", "64"]),
    (["trace"], ["FILE"]),
])
def test_wrong_use_is_one_line_and_exit_code_2(args, words):
    assert_refused(octavo(*args), 2, *words)


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    (folder / "empty.gguf").write_bytes(b"")
    (folder / "garbage.gguf").write_bytes(bytes(range(256)) * 64)
    (folder / "magic_only.gguf").write_bytes(b"GGUF")
    (folder / "absurd.gguf").write_bytes(b"GGUF" + (3).to_bytes(4, "little") + b"\xff" * 16)
    (folder / "folder").mkdir()
    return folder


@pytest.mark.parametrize("command", LOADERS, ids=lambda command: command[0])
@pytest.mark.parametrize("name", ["missing.gguf", "empty.gguf", "garbage.gguf", "magic_only.gguf", "absurd.gguf", "folder"])
def test_bad_models_are_one_line_and_exit_code_1(command, name, bad_files):
    path = str(bad_files / name)
    assert_refused(octavo(*[word.format(path) for word in command]), 1, name)


def test_a_packaged_model_that_is_absent_says_how_to_fetch_it(tmp_path):
    run = subprocess.run([OCTAVO, "inspect", "smollm2"], env={"OCTAVO_MODELS": str(tmp_path)}, capture_output=True,
                         text=True, timeout=60)
    assert_refused(run, 1, "run ./run fetch smollm2")


def test_bad_lines_are_answered_and_the_others_go_on():
    lines = ["{", "[]", '"text"', "null", "", "[" * 100000, {"text": 5}, {"ids": [1, "two"]}, {"ids": [10**12]},
             {"ids": [-1]}, {}, {"text": "a", "ids": [1]}, {"text": "a", "add_special": 1}]
    answers = json_lines("tokenize", "smollm2", "--jsonl", lines=[*lines, {"text": "a"}])
    assert all(set(answer) == {"error"} and answer["error"] for answer in answers[:-1])
    assert answers[-1] == {"ids": [81]}


def test_template_lines():
    answers = json_lines("template", "--jsonl", lines=[
        {"template": "{{ a }}-{{ strftime_now('%Y') }}", "context": {"a": 1}, "now": "2026-01-15T12:34:56"},
        {"template": "{% if %}", "context": {}}, {"template": "x"}, {"context": {}},
        {"template": "x", "context": [], "now": 3}, {"template": "x", "context": {}, "now": "yesterday"},
        {"template": "{{ raise_exception('no') }}", "context": {}}])
    assert answers[0] == {"output": "1-2026"}
    assert all(set(answer) == {"error"} for answer in answers[1:])
    assert "no" in answers[-1]["error"]


def test_inspect_says_what_a_token_costs():
    info = json.loads(octavo("inspect", "smollm2", "--json").stdout)
    assert info["architecture"] == "llama" and info["num_layers"] == 30 and info["tied_embeddings"]
    assert info["kv_bytes_per_token"] == 2 * 2 * 3 * 64 * 30  # k and v, bf16, 3 heads of 64, 30 layers
    assert {layer["attention"] for layer in info["layers"]} == {"GQA"}
    assert info["chat_template"]
    gemma = json.loads(octavo("inspect", "gemma3-270m", "--json", "--kv-type", "f32").stdout)
    assert gemma["chat_template"] is None
    assert {layer["window"] for layer in gemma["layers"]} == {512, None}


def generate(*args, **options):
    run = octavo("generate", "--json", *args, **options)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_generate_is_the_same_however_it_is_asked(tmp_path):
    prompt = "The capital of France is"
    whole = generate("--max-tokens", 8, prompt)
    assert "Paris" in whole["text"] and whole["finish_reason"] == "length" and len(whole["tokens"]) == 8
    assert octavo("generate", "--max-tokens", 8, prompt).stdout == whole["text"] + "\n"
    assert octavo("generate", "smollm2", prompt, "--max-tokens", 8).stdout == whole["text"] + "\n"
    assert generate("--max-tokens", 8, stdin=prompt)["tokens"] == whole["tokens"]
    assert generate("--max-tokens", 8, "--no-kv-cache", prompt)["tokens"] == whole["tokens"]

    file = tmp_path / "prompts.jsonl"
    lines = [{"prompt": prompt}, "{", {"prompt": prompt, "max_tokens": 3}, {"ids": [10**9]}, {"prompt": ""},
             {"prompt": prompt, "n": 2, "temperature": 0.8, "seed": 7}]
    file.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    run = octavo("generate", "smollm2", "--prompts", file, "--max-tokens", 8)
    assert run.returncode == 0, run.stderr
    answers = [json.loads(line) for line in run.stdout.split("\n")[:-1]]
    assert [answer["index"] for answer in answers] == [0, 1, 2, 3, 4, 5, 5]
    assert answers[0]["tokens"] == whole["tokens"] and answers[2]["tokens"] == whole["tokens"][:3]
    assert all("error" in answers[i] for i in (1, 3, 4))
    assert answers[5]["tokens"] != answers[6]["tokens"]


def test_lost_output_is_an_error():
    with open("/dev/full", "w") as full:
        run = subprocess.run([OCTAVO, "inspect", "smollm2"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert run.returncode == 1 and "cannot write the output" in run.stderr, run


def test_prompts_that_cannot_be_read(tmp_path):
    (tmp_path / "empty.jsonl").write_text("")
    for path in (tmp_path, tmp_path / "none.jsonl", tmp_path / "empty.jsonl"):
        assert_refused(octavo("generate", "--prompts", path), 1, "--prompts", str(path))


def test_a_prompt_that_cannot_fit_is_refused_with_the_numbers():
    assert_refused(octavo("generate", "--max-model-len", 64, "--max-tokens", 8, "word " * 500), 1, "64")


def test_stop_strings_and_logprobs():
    answer = generate("--max-tokens", 20, "--stop", "Paris", "--logprobs", 3, "The capital of France is")
    assert answer["finish_reason"] == "stop" and "Paris" not in answer["text"]
    first = answer["logprobs"][0]
    assert len(first["top"]) == 3 and first["top"][0] == [first["id"], first["logprob"]]


def test_score():
    one, two, three = json_lines("score", "smollm2", "--jsonl", lines=[
        {"text": "The capital of France is", "top": 2, "next": True}, {"ids": []}, {"ids": [504, 3575], "top": 1}])
    assert one["logprobs"][0] is None and one["top"][0] == [] and all(value < 0 for value in one["logprobs"][1:])
    assert len(one["ids"]) == len(one["logprobs"]) == len(one["top"]) and len(one["next"]) == 2
    assert "error" in two
    assert three["ids"] == [504, 3575] and len(three["top"][1]) == 1


def test_score_of_a_file(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("The quick brown fox jumps over the lazy dog. " * 20)
    run = octavo("score", "smollm2", file, "--window", 64)
    assert run.returncode == 0 and "perplexity" in run.stdout and "NLL" in run.stdout
    assert_refused(octavo("score", "smollm2", tmp_path / "none.txt"), 1, "none.txt")


def test_chat_over_a_pipe():
    run = octavo("chat", "--temperature", 0, "--max-tokens", 8, stdin="Hello\n/reset\nHello\n/exit\nnever\n")
    assert run.returncode == 0, run.stderr
    answers = run.stdout.strip().splitlines()
    assert answers[: len(answers) // 2] == answers[len(answers) // 2 :]


def test_chat_with_a_base_model_names_the_flag():
    assert_refused(octavo("chat", "gemma3-270m", stdin="Hello\n"), 1, "--chat-template")
