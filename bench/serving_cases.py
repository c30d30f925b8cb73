"""The cases: each drives one server black-box and returns its figures as {name: number or text}."""

import asyncio
import math
import random
import statistics
import time
from dataclasses import dataclass

from serving_client import Prompts, join


@dataclass
class Sizes:
    clients_sharing: int = 4
    prefix: int = 1000
    tail: int = 50
    stream_before: int = 40   # tokens of the stream when the long prompt arrives
    long_prompt: int = 3000
    pool: int = 1536          # tokens that the tiny pool holds
    pool_requests: int = 4
    pool_prompt: int = 512
    pool_output: int = 256
    mixed_clients: int = 32
    mixed_requests: int = 96
    mixed_prompt: tuple = (32, 1024)
    mixed_output: tuple = (16, 256)
    queued: int = 32
    seats: int = 4            # sequences at once in the priority case
    queued_prompt: int = 128
    queued_output: int = 64


SMALL = Sizes(prefix=200, tail=20, stream_before=10, long_prompt=600, pool=384, pool_prompt=128, pool_output=64,
              mixed_clients=8, mixed_requests=16, mixed_prompt=(16, 128), mixed_output=(8, 32), queued=8, seats=2,
              queued_prompt=32, queued_output=24)


def percentile(values, share):
    """Linear between ranks; nan of nothing."""
    values = sorted(values)
    if not values:
        return math.nan
    at = share * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def sum_known(values):
    values = list(values)
    return sum(values) if values and all(v is not None for v in values) else "unknown"


def failures(answers):
    errors = [a.error for a in answers if not a.finished]
    return {"errors": len(errors), **({"first_error": errors[0]} if errors else {})}


async def shared_prefix(server, sizes, seed):
    """Clients with one long prefix and tails of their own, together and, with a new prefix, one after another."""
    prompts = Prompts(server, seed)
    out = {"least_possible": sizes.prefix + sizes.clients_sharing * sizes.tail}
    for name, together in (("together", True), ("in_turn", False)):
        prefix = await prompts.take(sizes.prefix)
        asked = [join(prefix, await prompts.take(sizes.tail)) for _ in range(sizes.clients_sharing)]
        before = await server.counters()
        if together:
            answers = await asyncio.gather(*(server.complete(p, 16) for p in asked))
        else:
            answers = [await server.complete(p, 16) for p in asked]
        after = await server.counters()
        out[f"{name}_prompt_tokens"] = sum(a.prompt_tokens for a in answers)
        out[f"{name}_computed"] = sum_known(a.computed_tokens for a in answers)
        for counter in ("prompt_tokens_total", "prompt_tokens_cached_total"):
            if (key := f"vllm:{counter}") in after:
                out[f"{name}_{counter}"] = after[key] - before.get(key, 0)
        for i, answer in enumerate(answers):
            out[f"{name}_ttft_{i + 1}_s"] = answer.ttft if answer.finished else math.nan
        out.update({f"{name}_{k}": v for k, v in failures(answers).items()})
    return out


async def long_prompt(server, sizes, seed):
    """A long prompt arrives while another client streams: the freeze that the stream sees.

    Afterwards a stream of as many tokens runs alone: the gaps that it sees are the machine's own.
    """
    prompts = Prompts(server, seed)
    short, long, control = [await prompts.take(n) for n in (32, sizes.long_prompt, 32)]
    warm, over = asyncio.Event(), asyncio.Event()
    count_at_end = None

    def on_token(count):
        nonlocal count_at_end
        if count >= sizes.stream_before:
            warm.set()
        if over.is_set() and count_at_end is None:
            count_at_end = count
        return count_at_end is not None and count >= count_at_end + 10

    stream = asyncio.create_task(server.complete(short, sizes.long_prompt, on_token))
    waiting = asyncio.create_task(warm.wait())
    await asyncio.wait({stream, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    arrival = time.perf_counter()
    intruder = await server.complete(long, 8)
    over.set()
    streamed = await stream
    alone = await server.complete(control, len(streamed.tokens_at))
    before = [b - a for a, b in zip(streamed.tokens_at, streamed.tokens_at[1:]) if b <= arrival]
    after = [b - a for a, b in zip(streamed.tokens_at, streamed.tokens_at[1:]) if b > arrival]
    out = failures([streamed, intruder, alone])
    if before and after:
        median = statistics.median(before)
        out |= {"median_gap_before_ms": 1e3 * median, "p99_gap_after_ms": 1e3 * percentile(after, 0.99),
                "largest_gap_after_ms": 1e3 * max(after), "ratio": max(after) / median,
                "tokens_meanwhile": sum(arrival < t <= intruder.ended for t in streamed.tokens_at)}
    gaps = [b - a for a, b in zip(alone.tokens_at, alone.tokens_at[1:])]
    if len(gaps) > sizes.stream_before:
        quiet, rest = gaps[: sizes.stream_before], gaps[sizes.stream_before :]
        out |= {"alone_p99_gap_ms": 1e3 * percentile(rest, 0.99), "alone_largest_gap_ms": 1e3 * max(rest),
                "alone_ratio": max(rest) / statistics.median(quiet)}
    if intruder.finished:
        out["long_ttft_s"] = intruder.ttft
    return out


async def tiny_pool(server, sizes, seed):
    """More is asked at once than the KV pool holds, though each request alone would fit."""
    prompts = Prompts(server, seed)
    asked = [await prompts.take(sizes.pool_prompt) for _ in range(sizes.pool_requests)]
    begin = time.perf_counter()
    answers = await asyncio.gather(*(server.complete(p, sizes.pool_output) for p in asked))
    whole = sum(a.finished and a.completion_tokens == sizes.pool_output for a in answers)
    return {"requests": len(answers), "finished_whole": whole, **failures(answers), "seconds": time.perf_counter() - begin}


async def mixed(server, sizes, seed):
    """Clients that each send their next request when the last one is answered."""
    prompts, draw = Prompts(server, seed), random.Random(seed)
    asked = [(await prompts.take(draw.randint(*sizes.mixed_prompt)), draw.randint(*sizes.mixed_output))
             for _ in range(sizes.mixed_requests)]
    queue, answers = iter(asked), []

    async def client():
        for prompt, output in queue:
            answers.append(await server.complete(prompt, output))

    begin = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(sizes.mixed_clients)))
    seconds = time.perf_counter() - begin
    done = [a for a in answers if a.finished]
    tpots = [a.tpot for a in done if a.tpot is not None]
    return {"requests": len(answers), **failures(answers), "seconds": seconds,
            "output_tokens": sum(a.completion_tokens for a in done),
            "output_tok_per_s": sum(a.completion_tokens for a in done) / seconds,
            "ttft_p50_s": percentile([a.ttft for a in done], .5), "ttft_p99_s": percentile([a.ttft for a in done], .99),
            "tpot_p50_ms": 1e3 * percentile(tpots, .5), "tpot_p99_ms": 1e3 * percentile(tpots, .99),
            "worst_gap_s": max((g for a in done for g in a.gaps), default=math.nan)}


async def priority(server, sizes, seed):
    """An urgent request behind a queue of patient ones: whom it overtakes of those that have not started."""
    prompts = Prompts(server, seed)
    asked = [await prompts.take(sizes.queued_prompt) for _ in range(sizes.queued + 1)]
    started, seated = [0] * sizes.queued, asyncio.Event()

    def note(i):
        def on_token(count):
            started[i] = count
            if sum(n >= 4 for n in started) >= sizes.seats:
                seated.set()
        return on_token

    patient = [asyncio.create_task(server.complete(p, sizes.queued_output, note(i), priority=5))
               for i, p in enumerate(asked[:-1])]
    waiting, all_done = asyncio.create_task(seated.wait()), asyncio.gather(*patient)
    await asyncio.wait({waiting, all_done}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    not_started = [i for i, n in enumerate(started) if n == 0]
    urgent = await server.complete(asked[-1], sizes.queued_output, priority=0)
    answers = await all_done
    out = {"not_started": len(not_started), **failures([*answers, urgent])}
    if urgent.finished:
        first = urgent.tokens_at[0]
        out["overtaken"] = sum(answers[i].finished and answers[i].tokens_at[0] > first for i in not_started)
        out["urgent_ttft_s"] = urgent.ttft
        out["patient_ttft_p50_s"] = percentile([a.ttft for a in answers if a.finished], .5)
    return out


CASES = {"shared-prefix": shared_prefix, "long-prompt": long_prompt, "tiny-pool": tiny_pool, "mixed": mixed,
         "priority": priority}
