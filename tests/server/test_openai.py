"""The server as the openai client and other tools see it.

OCTAVO_BASE_URL names a running server ("http://127.0.0.1:8080"). Without it, OCTAVO_BIN (and OCTAVO_TEST_MODEL, by
default smollm2) start one on a free port, and the drain test runs, too. Works with pytest and as a plain program.
"""

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import unittest
import urllib.error
import urllib.request

import openai

os.environ.setdefault("OCTAVO_CACHE", "off")  # of the servers started here: what tests pack, nobody keeps
MESSAGES = [{"role": "user", "content": "Name three colours."}]
LIMIT = 120  # seconds, for anything


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class OwnServer:
    """octavo serve, as long as it is wanted."""

    def __init__(self, *flags):
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        model = os.environ.get("OCTAVO_TEST_MODEL", "smollm2")
        command = [os.environ["OCTAVO_BIN"], "serve", model, "--port", str(port), *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: self.process.poll() is not None or is_ready(self.url))
        if self.process.poll() is not None:
            raise RuntimeError(f"{' '.join(command)} ended with {self.process.returncode}")

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def is_ready(url):
    try:
        return urllib.request.urlopen(url + "/ready", timeout=5).status == 200
    except OSError:
        return False


def wait_for(condition, seconds=LIMIT):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


_server = None


def setUpModule():
    global _server
    if "OCTAVO_BASE_URL" in os.environ:
        return
    if "OCTAVO_BIN" not in os.environ:
        raise unittest.SkipTest("neither OCTAVO_BASE_URL nor OCTAVO_BIN is set: no server to talk to")
    _server = OwnServer()


def tearDownModule():
    if _server:
        _server.stop()


def base_url():
    return os.environ.get("OCTAVO_BASE_URL") or _server.url


class ServerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = openai.OpenAI(base_url=base_url() + "/v1", api_key="none", timeout=LIMIT, max_retries=0)
        cls.model = cls.client.models.list().data[0].id

    def complete(self, prompt, **more):
        return self.client.completions.create(model=self.model, prompt=prompt, **more)

    def chat(self, messages=None, **more):
        return self.client.chat.completions.create(model=self.model, messages=messages or MESSAGES, **more)

    def post(self, path, body):
        request = urllib.request.Request(base_url() + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        return json.load(urllib.request.urlopen(request, timeout=LIMIT))

    def tokens(self, text, special=False):
        return self.post("/tokenize", {"prompt": text, "add_special_tokens": special})["tokens"]

    def metric(self, name, **labels):
        text = urllib.request.urlopen(base_url() + "/metrics", timeout=LIMIT).read().decode()
        total = 0.0
        for line in text.splitlines():
            match = re.fullmatch(re.escape(name) + r"(?:\{(.*)\})? (\S+)", line)
            if match and all(f'{key}="{value}"' in (match[1] or "") for key, value in labels.items()):
                total += float(match[2])
        return total


class Completions(ServerTest):
    def test_whole(self):
        answer = self.complete("The capital of France is", max_tokens=8, temperature=0)
        self.assertEqual(answer.object, "text_completion")
        self.assertEqual(answer.model, self.model)
        self.assertTrue(answer.id.startswith("cmpl-"))
        self.assertTrue(answer.system_fingerprint)
        self.assertTrue(answer.choices[0].text)
        self.assertIn(answer.choices[0].finish_reason, ("stop", "length"))
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)
        self.assertIsNotNone(answer.usage.prompt_tokens_details.cached_tokens)

    def test_default_is_sixteen_tokens(self):
        answer = self.complete("One, two,", temperature=0, extra_body={"ignore_eos": True})
        self.assertEqual(answer.usage.completion_tokens, 16)
        self.assertEqual(answer.choices[0].finish_reason, "length")

    def test_stream_says_the_same(self):
        arguments = {"prompt": "Once upon a time", "max_tokens": 24, "temperature": 0}
        whole = self.complete(**arguments)
        chunks = list(self.complete(**arguments, stream=True, stream_options={"include_usage": True}))
        self.assertEqual("".join(c.choices[0].text for c in chunks if c.choices), whole.choices[0].text)
        self.assertEqual(chunks[-1].choices, [])
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)
        self.assertTrue(all(c.usage is None for c in chunks[:-1]))
        self.assertEqual(len({(c.id, c.created, c.model) for c in chunks}), 1)
        self.assertEqual(chunks[-2].choices[0].finish_reason, whole.choices[0].finish_reason)

    def test_n_choices(self):
        answer = self.complete("Colours:", n=3, max_tokens=6, temperature=1, seed=1, extra_body={"ignore_eos": True})
        self.assertEqual([c.index for c in answer.choices], [0, 1, 2])
        self.assertEqual(len({c.text for c in answer.choices}), 3)
        self.assertEqual(answer.usage.completion_tokens, 18)

    def test_seed_repeats(self):
        arguments = {"prompt": "A story:", "max_tokens": 12, "temperature": 1.2, "extra_body": {"ignore_eos": True}}
        first, again, other = (self.complete(**arguments, seed=seed).choices[0].text for seed in (7, 7, 8))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_lists_of_prompts_keep_their_order(self):
        prompts = ["The sky is", "Two plus two is", "Water is"]
        arguments = {"max_tokens": 5, "temperature": 0, "extra_body": {"ignore_eos": True}}
        together = self.complete(prompts, **arguments)
        self.assertEqual([c.index for c in together.choices], [0, 1, 2])
        alone = [self.complete(prompt, **arguments).choices[0].text for prompt in prompts]
        self.assertEqual([c.text for c in together.choices], alone)
        ids = [self.tokens(prompt, special=True) for prompt in prompts]
        self.assertEqual([c.text for c in self.complete(ids, **arguments).choices], alone)
        self.assertEqual(self.complete(ids[0], **arguments).choices[0].text, alone[0])

    def test_logprobs(self):
        answer = self.complete("The sky is", max_tokens=4, temperature=0, logprobs=3, extra_body={"ignore_eos": True})
        logprobs = answer.choices[0].logprobs
        self.assertEqual(len(logprobs.tokens), 4)
        for token, logprob, top in zip(logprobs.tokens, logprobs.token_logprobs, logprobs.top_logprobs):
            self.assertLessEqual(logprob, 0)
            self.assertIn(token, top)
            self.assertIn(len(top), (3, 4))
        self.assertEqual(logprobs.text_offset[0], 0)
        self.assertEqual(logprobs.text_offset[1], len(logprobs.tokens[0]))

    def test_echo(self):
        answer = self.complete("Hello there", max_tokens=2, temperature=0, echo=True, extra_body={"ignore_eos": True})
        self.assertTrue(answer.choices[0].text.startswith("Hello there"))

    def test_loglikelihood_as_evaluation_harnesses_ask(self):
        ids = self.tokens("The capital of France is Paris.")
        answer = self.complete([ids, ids[:4]], max_tokens=1, temperature=0, logprobs=1, echo=True, seed=1234)
        for choice, prompt in zip(answer.choices, (ids, ids[:4])):
            logprobs = choice.logprobs
            self.assertEqual(len(logprobs.token_logprobs), len(prompt) + 1)
            self.assertIsNone(logprobs.token_logprobs[0])
            for token, logprob, top in list(zip(logprobs.tokens, logprobs.token_logprobs, logprobs.top_logprobs))[1:]:
                self.assertIn(token, top)
                self.assertLessEqual(logprob, 0)

    def test_stop_strings_and_tokens(self):
        plain = self.complete("1 2 3 4 5 6 7 8", max_tokens=12, temperature=0, extra_body={"ignore_eos": True}).choices[0].text
        stop = plain[len(plain) // 2]
        answer = self.complete("1 2 3 4 5 6 7 8", max_tokens=12, temperature=0, stop=[stop], extra_body={"ignore_eos": True})
        self.assertEqual(answer.choices[0].text, plain[: plain.index(stop)])
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertEqual(answer.choices[0].stop_reason, stop)

    def test_logit_bias_decides(self):
        token = self.tokens("x")[-1]
        answer = self.complete("Say:", max_tokens=3, temperature=0, logit_bias={str(token): 100})
        text = self.post("/detokenize", {"tokens": [token] * 3})["prompt"]
        self.assertEqual(answer.choices[0].text.strip(), text.strip())

    def test_ignore_eos_and_min_tokens(self):
        answer = self.complete("Bye", max_tokens=20, temperature=0, extra_body={"min_tokens": 20})
        self.assertEqual(answer.usage.completion_tokens, 20)


class Chat(ServerTest):
    def setUp(self):
        try:
            self.chat(max_tokens=1)
        except openai.BadRequestError as error:
            if "--chat-template" in str(error):
                self.skipTest("this model has no chat template")
            raise

    def test_whole(self):
        answer = self.chat(max_completion_tokens=8, temperature=0)
        self.assertEqual(answer.object, "chat.completion")
        self.assertEqual(answer.choices[0].message.role, "assistant")
        self.assertTrue(answer.choices[0].message.content)
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)

    def test_stream_says_the_same(self):
        arguments = {"max_tokens": 16, "temperature": 0}
        whole = self.chat(**arguments)
        chunks = list(self.chat(**arguments, stream=True, stream_options={"include_usage": True}))
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(chunks[-2].choices[0].finish_reason, whole.choices[0].finish_reason)
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)

    def test_stream_helper(self):
        with self.client.chat.completions.stream(model=self.model, messages=MESSAGES, max_tokens=8, temperature=0) as stream:
            text = stream.until_done().current_completion_snapshot.choices[0].message.content
        self.assertEqual(text, self.chat(max_tokens=8, temperature=0).choices[0].message.content)

    def test_parts_are_text(self):
        parts = [{"role": "user", "content": [{"type": "text", "text": MESSAGES[0]["content"]}]}]
        a = self.chat(max_tokens=6, temperature=0).choices[0].message.content
        self.assertEqual(self.chat(parts, max_tokens=6, temperature=0).choices[0].message.content, a)

    def test_logprobs(self):
        content = self.chat(max_tokens=3, temperature=0, logprobs=True, top_logprobs=2).choices[0].logprobs.content
        for token in content:
            self.assertEqual(len(token.top_logprobs), 2)
            self.assertGreaterEqual(token.top_logprobs[0].logprob, token.logprob)
            self.assertTrue(token.bytes)

    def test_n_choices(self):
        answer = self.chat(n=2, max_tokens=8, temperature=1.5, seed=3)
        self.assertEqual([c.index for c in answer.choices], [0, 1])
        self.assertNotEqual(answer.choices[0].message.content, answer.choices[1].message.content)

    def test_unsupported_is_said(self):
        for more in ({"response_format": {"type": "json_object"}}, {"tools": [], "tool_choice": "required"}):
            with self.assertRaisesRegex(openai.BadRequestError, "not supported"):
                self.chat(max_tokens=1, **more)


class Errors(ServerTest):
    def test_wrong_types_and_absurd_numbers(self):
        for name, value in (("temperature", "hot"), ("temperature", -1), ("top_p", 7), ("n", 0), ("n", 10**6),
                            ("max_tokens", -5), ("max_tokens", 1.5), ("logprobs", 1000), ("stop", [3])):
            with self.subTest(name=name, value=value), self.assertRaises(openai.BadRequestError) as caught:
                self.complete("x", extra_body={name: value})
            self.assertEqual(caught.exception.param, name)
            self.assertEqual(caught.exception.type, "invalid_request_error")

    def test_wrong_shapes_in_chat(self):
        for name, more in (("tools", {"tools": [5]}), ("reasoning_effort", {"reasoning_effort": 5}),
                           ("cache_salt", {"cache_salt": ""}), ("deadline_ms", {"deadline_ms": 0}),
                           ("messages", {"messages": [{"role": "pope", "content": "x"}]}),
                           ("messages", {"messages": [{"role": 5, "content": "x"}]})):
            with self.subTest(name=name), self.assertRaises(openai.BadRequestError) as caught:
                self.chat(max_tokens=1, extra_body=more)
            self.assertEqual(caught.exception.param, name)

    def test_context_overflow_has_the_numbers(self):
        limit = self.post("/tokenize", {"prompt": "x"})["max_model_len"]
        with self.assertRaisesRegex(openai.BadRequestError, f"maximum context length is {limit} tokens") as caught:
            self.complete("x", max_tokens=limit)
        self.assertEqual(caught.exception.code, "context_length_exceeded")
        with self.assertRaises(openai.BadRequestError):
            self.complete("word " * 100_000)

    def test_unknown_model(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.completions.create(model="nothing", prompt="x")
        self.assertEqual(caught.exception.code, "model_not_found")

    def test_no_json(self):
        request = urllib.request.Request(base_url() + "/v1/completions", b"{\"prompt\": \"\xff\"}")
        with self.assertRaises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request, timeout=LIMIT)
        self.assertEqual(caught.exception.code, 400)
        caught.exception.close()


class Others(ServerTest):
    def test_models(self):
        self.assertEqual(self.client.models.retrieve(self.model).id, self.model)

    def test_tokenize_round_trip(self):
        text = "Grüße, 世界! 🎉"
        ids = self.tokens(text)
        self.assertEqual(self.post("/detokenize", {"tokens": ids})["prompt"].strip(), text)
        self.assertEqual(self.post("/tokenize", {"content": text})["tokens"], ids)

    def test_a_client_that_leaves_frees_its_blocks(self):
        aborts = self.metric("vllm:request_success_total", finished_reason="abort")
        streams = [self.complete(f"Tell me {i}", max_tokens=500, stream=True, extra_body={"ignore_eos": True}) for i in range(4)]
        for stream in streams:
            next(iter(stream))
        self.assertGreater(self.metric("vllm:num_requests_running"), 0)
        for stream in streams:
            stream.close()
        self.assertTrue(wait_for(lambda: self.metric("vllm:num_requests_running") == 0, 20))
        self.assertEqual(self.metric("vllm:num_requests_waiting"), 0)
        self.assertEqual(self.metric("vllm:kv_cache_usage_perc"), 0)
        self.assertGreater(self.metric("vllm:request_success_total", finished_reason="abort"), aborts)

    def test_cached_tokens_by_salt(self):
        prompt = "A long enough story about a library whose books were folded eight times. " * 8

        def cached(**more):
            usage = self.complete(prompt, max_tokens=1, extra_body=more).usage
            return usage.prompt_tokens_details.cached_tokens

        salt = f"{time.time_ns()}"
        self.assertEqual(cached(cache_salt=salt), 0)
        self.assertGreaterEqual(cached(cache_salt=salt), 96)
        self.assertEqual(cached(cache_salt=salt + "x"), 0)
        hits = self.metric("vllm:prefix_cache_hits_total")
        self.assertTrue(wait_for(lambda: self.metric("vllm:kv_cache_usage_perc") == 0, 20))
        self.assertEqual(self.post("/reset_prefix_cache", {}), {"status": "ok"})
        self.assertEqual(cached(cache_salt=salt), 0)
        self.assertEqual(self.metric("vllm:prefix_cache_hits_total"), hits)

    def test_a_passed_deadline(self):
        with self.assertRaises(openai.InternalServerError) as caught:
            self.complete("x", max_tokens=1000, extra_body={"ignore_eos": True, "deadline_ms": 100})
        self.assertEqual(caught.exception.status_code, 504)
        self.assertEqual(caught.exception.code, "deadline_exceeded")
        stream = self.complete("x", max_tokens=1000, stream=True, extra_body={"ignore_eos": True, "deadline_ms": 300})
        with self.assertRaisesRegex(openai.APIError, "deadline of 300 ms"):
            for chunk in stream:
                self.assertIsNone(chunk.choices[0].finish_reason)

    def test_metrics_count(self):
        before = self.metric("vllm:generation_tokens_total")
        self.complete("x", max_tokens=5, extra_body={"ignore_eos": True})
        self.assertEqual(self.metric("vllm:generation_tokens_total"), before + 5)


class Drain(unittest.TestCase):
    @unittest.skipUnless("OCTAVO_BIN" in os.environ, "OCTAVO_BIN is not set: no server of our own to end")
    def test_sigterm_finishes_what_runs(self):
        server = OwnServer("--shutdown-timeout", "60")
        try:
            client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", timeout=LIMIT, max_retries=0)
            model = client.models.list().data[0].id
            answers = []

            def ask():
                stream = client.completions.create(model=model, prompt="Count:", max_tokens=200, stream=True,
                                                   extra_body={"ignore_eos": True})
                answers.append([chunk.choices[0].finish_reason for chunk in stream][-1])

            thread = threading.Thread(target=ask)
            thread.start()
            running = re.compile(rb"vllm:num_requests_running\{[^}]*\} [1-9]")
            wait_for(lambda: running.search(urllib.request.urlopen(server.url + "/metrics").read()))
            server.process.send_signal(signal.SIGTERM)
            thread.join(LIMIT)
            self.assertEqual(answers, ["length"])
            self.assertEqual(server.process.wait(LIMIT), 0)
        finally:
            server.stop()


if __name__ == "__main__":
    unittest.main()
