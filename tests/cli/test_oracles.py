"""Tokenizers and templates through the command line, against the reference data."""

import pytest

from conftest import ORACLES, json_lines, oracle

TEMPLATES = sorted(path.stem for path in (ORACLES / "templates").glob("*.json")) or ["micro"]


@pytest.mark.parametrize("model, name", [("smollm2", "smollm2"), ("gemma3-270m", "gemma3")])
def test_token_ids(model, name):
    data = oracle("tokenizers", f"{name}.json")
    asked, wanted = [], []
    for case in data["cases"]:
        asked += [{"text": case["text"], "add_special": False}, {"text": case["text"]}, {"ids": case["ids"]}]
        wanted += [{"ids": case["ids"]}, {"ids": case["ids_special"]}, {"text": case["decoded"]}]
        if "ids_plain" in case:
            asked.append({"text": case["text"], "add_special": False, "parse_special": False})
            wanted.append({"ids": case["ids_plain"]})
    answers = json_lines("tokenize", model, "--jsonl", lines=asked)
    wrong = [(a, w, g) for a, w, g in zip(asked, wanted, answers) if w != g]
    assert not wrong, wrong[:3]


def context(data, case):
    """A snippet brings its own; a conversation is put in as apply_chat_template does."""
    if "context" in case:
        return case["context"]
    return {"messages": case["messages"], "tools": case["tools"], "documents": None, **data["special_tokens"],
            **case["kwargs"]}


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates(name):
    data = oracle("templates", f"{name}.json")
    cases = data["cases"]
    asked = [{"template": case.get("template") or data["template"], "context": context(data, case), "now": data["now"]}
             for case in cases]
    answers = json_lines("template", "--jsonl", lines=asked)
    for case, answer in zip(cases, answers):
        if "output" in case:
            assert answer == {"output": case["output"]}, case["name"]
        elif case["error_type"] != "SecurityError":
            assert set(answer) == {"error"}, case["name"]
            assert case["error_type"] != "raise_exception" or case["error"] in answer["error"], case["name"]
