"""2,000 damaged requests: no traceback, no hang, no growth, and the page answers afterwards."""

import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from random import Random

import pytest
from fuzzing import requests
from fuzzing.mutate import damage_bytes
from fuzzing.requests import damage_request, request_seeds, send_request
from made.waiting import PATIENCE_S

from steadyseg.core.errors import InputError

REQUESTS = 2000
LINES = 4
"""Requests under way at once."""
SILENCE_S = 5
"""Seconds after which a request that brings less than it announced times out."""
GROWTH_MB = 100
"""Memory beyond that after the first fifth of the requests."""
ODD_TARGETS = (
    b"/../../../../etc/passwd",
    b"/gradio_api/file=/etc/passwd",
    b"/gradio_api/file=%2fetc%2fpasswd",
    b"/gradio_api/file=http://127.0.0.1:1/",
    b"/static/..%2f..%2f..%2f..%2fetc%2fpasswd",
    b"/in-browser/..%5c..%5cetc/passwd",
    b"/live/" + b"a" * 5000,
    b"/gradio_api/queue/data?session_hash=\x00\xff",
    b"/gradio_api/heartbeat/x",
    b"http://169.254.169.254/latest/meta-data",
    b"*",
    b"",
)


def damaged(original: bytes, dice: Random) -> bytes:
    """A fifth of the requests get another target; the others what the study of faults does to them."""
    if dice.random() > 0.2:
        return damage_request(original, dice)
    method, _, rest = original.split(b" ", 2)
    target = damage_bytes(dice.choice(ODD_TARGETS), dice) if dice.random() < 0.5 else dice.choice(ODD_TARGETS)
    return b" ".join((dice.choice((b"GET", b"HEAD", b"POST", b"OPTIONS", method)), target, rest))


@pytest.mark.long
def test_damaged_requests_end_in_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "SILENCE_S", PATIENCE_S)  # the first picture waits for its network
    seeds = request_seeds(tmp_path)
    running = requests.server()
    for path in seeds:
        list(send_request(path))  # raises where a whole request is refused
    monkeypatch.setattr(requests, "SILENCE_S", SILENCE_S)

    def attempt(number: int) -> tuple[str, float]:
        dice = Random(f"request {number}")
        path = tmp_path / f"{number}.http"
        # A session of its own for each line: one that two listen to tells each of them half.
        path.write_bytes(
            damaged(dice.choice(seeds).read_bytes().replace(b"fuzzing", b"fuzzin%d" % (number % LINES)), dice)
        )
        began_s, end = time.monotonic(), "answered"
        try:
            list(send_request(path))
        except InputError as refused:
            end = str(refused)
        finally:
            path.unlink()
        return end, time.monotonic() - began_s

    def attempts(line: int, numbers: range) -> list[tuple[str, float]]:
        return [attempt(number) for number in numbers if number % LINES == line]

    def run(numbers: range) -> Counter[str]:
        with ThreadPoolExecutor(LINES) as pool:
            done = [one for part in pool.map(partial(attempts, numbers=numbers), range(LINES)) for one in part]
        assert max(seconds for _, seconds in done) < PATIENCE_S
        return Counter(end for end, _ in done)

    ends = run(range(REQUESTS // 5))  # the networks of all models and methods are compiled, and the pool is full
    warm_mb = resident_mb(running.process.pid)
    ends += run(range(REQUESTS // 5, REQUESTS))
    assert ends["answered"] > REQUESTS / 10
    assert resident_mb(running.process.pid) - warm_mb < GROWTH_MB
    monkeypatch.setattr(requests, "SILENCE_S", PATIENCE_S)
    for path in seeds:
        list(send_request(path))


def resident_mb(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) // 1024
