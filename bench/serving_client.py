"""A client of any OpenAI-compatible server, for measuring: streams /v1/completions and notes when each token came."""

import asyncio
import json
import random
import time
import urllib.parse
from dataclasses import dataclass, field

PATIENCE_S = 900

WORDS = """time year people way day man thing woman life child world school state family student group country problem
hand part place case week company system program question work government number night point home water room mother
area money story fact month lot right study book eye job word business issue side kind head house service friend
father power hour game line end member law car city community name president team minute idea body information back
parent face others level office door health person art war history party result change morning reason research girl
guy moment air teacher force education""".split()


@dataclass
class Answer:
    """What became of one request. Times are seconds of time.perf_counter()."""
    sent: float = 0
    tokens_at: list = field(default_factory=list)  # arrivals of chunks that carry output
    ended: float = 0
    status: int = 0
    error: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int | None = None    # by usage
    computed_tokens: int | None = None  # of the prompt, by the server's own count

    @property
    def finished(self):
        return not self.error and bool(self.tokens_at)

    @property
    def ttft(self):
        return self.tokens_at[0] - self.sent

    @property
    def tpot(self):
        """Seconds per token after the first; None for a single token."""
        return (self.tokens_at[-1] - self.tokens_at[0]) / (self.completion_tokens - 1) if self.completion_tokens > 1 else None

    @property
    def gaps(self):
        return [b - a for a, b in zip(self.tokens_at, self.tokens_at[1:])]


class HttpError(Exception):
    pass


class Server:
    """One server by its URL."""

    def __init__(self, url, name=""):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port = parts.hostname, parts.port or 80
        self.name = name or url
        self.model = ""

    async def connect(self):
        """Learns the served model's name."""
        status, body = await self.request("GET", "/v1/models")
        if status != 200:
            raise HttpError(f"{self.name}: GET /v1/models answers {status}")
        self.model = json.loads(body)["data"][0]["id"]

    async def request(self, method, path, body=None):
        """(status, body) of one exchange."""
        reader, writer, status, chunks = await self._exchange(method, path, body)
        try:
            return status, b"".join([piece async for piece in chunks])
        finally:
            writer.close()

    async def tokenize(self, text):
        """Token ids; None if the server has no such route."""
        for body, key in (({"content": text, "add_special": False}, "tokens"), ({"prompt": text}, "tokens")):
            status, answer = await self.request("POST", "/tokenize", {"model": self.model, **body})
            if status == 200 and json.loads(answer).get(key):
                return json.loads(answer)[key]
        return None

    async def counters(self):
        """Prometheus counters by name, summed over labels; {} if the server has none."""
        status, body = await self.request("GET", "/metrics")
        out = {}
        for line in body.decode().splitlines() if status == 200 else []:
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                out[name.split("{")[0]] = out.get(name.split("{")[0], 0) + float(value)
        return out

    async def complete(self, prompt, max_tokens, on_token=None, **fields):
        """Streams one completion. `prompt`: ids or text. `on_token(n)` is called at each; True ends the stream early."""
        answer = Answer(sent=time.perf_counter())
        try:
            await asyncio.wait_for(self._complete(answer, prompt, max_tokens, on_token, fields), PATIENCE_S)
        except asyncio.TimeoutError:
            answer.error = f"no end within {PATIENCE_S} s"
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            answer.error = answer.error or f"{type(error).__name__}: {error}"
        answer.ended = time.perf_counter()
        return answer

    async def _complete(self, answer, prompt, max_tokens, on_token, fields):
        body = {"model": self.model, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "ignore_eos": True,
                "stream": True, "stream_options": {"include_usage": True}, **fields}
        reader, writer, answer.status, chunks = await self._exchange("POST", "/v1/completions", body)
        try:
            if answer.status != 200:
                answer.error = told_error(b"".join([piece async for piece in chunks])) or f"HTTP {answer.status}"
                return
            async for event in events(chunks):
                if event is DONE:
                    return
                if self._take(answer, event) and on_token and on_token(len(answer.tokens_at)):
                    return
                if answer.error:
                    return
            answer.error = "the stream ended without [DONE]"
        finally:
            writer.close()

    @staticmethod
    def _take(answer, event):
        """Folds one event into the answer; True if it carries output."""
        if "error" in event:
            answer.error = told_error(json.dumps(event).encode())
            return False
        if usage := event.get("usage"):
            answer.prompt_tokens = usage.get("prompt_tokens", 0)
            answer.completion_tokens = usage.get("completion_tokens", 0)
            answer.cached_tokens = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
            if answer.cached_tokens is not None and answer.computed_tokens is None:
                answer.computed_tokens = answer.prompt_tokens - answer.cached_tokens
        if timings := event.get("timings"):  # llama-server
            answer.computed_tokens = timings.get("prompt_n")
        choice = (event.get("choices") or [None])[0]
        if choice is None or not (choice.get("text") or choice.get("finish_reason") is None):
            return False
        answer.tokens_at.append(time.perf_counter())
        return True

    async def _exchange(self, method, path, body):
        reader, writer = await asyncio.open_connection(self.host, self.port, limit=1 << 22)
        data = b"" if body is None else json.dumps(body).encode()
        writer.write((f"{method} {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nConnection: close\r\n"
                      f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n").encode() + data)
        await writer.drain()
        line = (await reader.readline()).split()
        if len(line) < 2:
            raise ConnectionResetError(f"{self.name} closed the connection without an answer")
        status = int(line[1])
        headers = {}
        while (line := (await reader.readline()).strip()):
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        return reader, writer, status, body_chunks(reader, headers)


DONE = object()


async def body_chunks(reader, headers):
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while size := int((await reader.readline()).split(b";")[0], 16):
            yield (await reader.readexactly(size + 2))[:-2]
    elif "content-length" in headers:
        yield await reader.readexactly(int(headers["content-length"]))
    else:
        while piece := await reader.read(1 << 16):
            yield piece


async def events(chunks):
    """Server-sent events: JSON objects, and DONE."""
    rest = b""
    async for piece in chunks:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            kind, _, data = line.strip().partition(b":")
            data = data.strip()
            if kind == b"data":
                yield DONE if data == b"[DONE]" else json.loads(data)
            elif kind == b"error":
                yield {"error": json.loads(data)}


def told_error(body):
    """The message of an error body, on one line."""
    try:
        error = json.loads(body)["error"]
        text = error["message"] if isinstance(error, dict) else str(error)
    except (ValueError, KeyError, TypeError):
        text = body.decode(errors="replace")
    return " ".join(text.split())[:200]


class Prompts:
    """Prompts of exact token counts from a seed: equal for servers of one model, and no two share a prefix."""

    def __init__(self, server, seed):
        self.server, self.random = server, random.Random(seed)

    async def take(self, tokens):
        """`tokens` ids; as many words if the server does not tokenize."""
        text = " ".join(self.random.choices(WORDS, k=tokens + 8))
        ids = await self.server.tokenize(text)
        return ids[-tokens:] if ids else " ".join(text.split()[:tokens])


def join(first, second):
    return first + second if isinstance(first, list) else f"{first} {second}"
