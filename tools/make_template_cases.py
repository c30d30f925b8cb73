#!/usr/bin/env python3
"""Fill in what jinja2 makes of each template in tests/golden/template_cases.json, in the environment of
transformers' apply_chat_template. To add a case, add {"template": "..."} to the file and run this.

usage: make_template_cases.py tests/golden/template_cases.json      (needs jinja2==3.1.6)
"""

import copy
import datetime
import json
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox


class Generation(jinja2.ext.Extension):
    """{% generation %}: marks what the assistant wrote; renders as its body, in a scope of its own."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("render"), [], [], body).set_lineno(line)

    def render(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment(now):
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = now.strftime
    return made


def outcome(env, template, context):
    try:
        return {"output": env.from_string(template).render(**context)}
    except Exception as error:  # of the template or of Python inside it
        raised = type(error) is jinja2.TemplateError
        return {"error": str(error), "error_type": "raise_exception" if raised else type(error).__name__}


def main(path):
    with open(path, encoding="utf-8") as file:
        golden = json.load(file)
    env = environment(datetime.datetime.fromisoformat(golden["now"]))
    golden["cases"] = [
        {"template": case["template"], **outcome(env, case["template"], copy.deepcopy(golden["context"]))}
        for case in golden["cases"]
    ]
    text = json.dumps(golden, separators=(",", ":")).replace('{"template":', '\n{"template":')
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")


main(sys.argv[1])
