"""The rows of the check, in the order of their importance, and their run: each is kept as soon as it is measured.

A row that fails, hangs or ends its process stops no other row.
"""

import json
import multiprocessing
import platform
import signal
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from steadyseg.core.errors import CheckFailed, InputError, first_line
from steadyseg.studies.gpu.files import Place, Row, nodes, plain, proven, speed
from steadyseg.studies.gpu.networks import compared_steps, published, steps, throughput, torch_step
from steadyseg.studies.harness.study import Cache, origin, round_figures

Rows = Callable[[Place], dict[str, Callable[[], Row]]]
SPAWN = multiprocessing.get_context("spawn")
NUMBERS = ("fp32", "bf16", "fp16")


def versions() -> Row:
    import onnxruntime as runtime

    builds = {"python": platform.python_version(), "cuda": torch.version.cuda, "onnxruntime": runtime.__version__}
    return builds | {"providers": runtime.get_available_providers()}


def rows_of(place: Place) -> dict[str, Callable[[], Row]]:
    """The measurement of each row. In fp16 a CPU computes far slower than in fp32."""
    on_gpu = place.device == "cuda"
    numbers = NUMBERS if on_gpu else NUMBERS[:2]
    rows: dict[str, Callable[[], Row]] = {
        "versions": versions,
        "provider": partial(nodes, place),
        "parity, plain file": partial(plain, place),
        "parity, stateful file": partial(proven, place, "fp32", False),
        "parity, stateful file in TF32": partial(proven, place, "fp32", True),
        "parity, stateful file of fp16": partial(proven, place, "fp16", True),
        "frames/s, stateful file": partial(speed, place, "fp32"),
        "frames/s, stateful file of fp16": partial(speed, place, "fp16"),
    }
    rows |= {f"training step, {number}": partial(compared_steps, place, number) for number in numbers}
    for number in reversed(numbers[:2]):
        rows[f"published training step, {number}"] = partial(steps, place, published(place), number)
        rows[f"published frames/s, {number}"] = partial(throughput, place, number)
    rows |= {f"frames/s, torch {number}": partial(torch_step, place, number) for number in numbers}
    return rows


def run_check(place: Place, record: Path, minutes: float, rows: Rows = rows_of) -> tuple[list[str], list[str]]:
    """Measures the rows that the record lacks or that failed; returns the names of those left and of those that failed.

    After so many minutes the row under way is left, too. A row is measured anew for another device or commit.
    """
    end = time.monotonic() + 60 * minutes
    about = {"device": torch.cuda.get_device_name() if place.device == "cuda" else "cpu", **origin()}
    digest = f"{about['device']}, commit {about['commit']}, {place.model}, {place.seconds:g} s, {place.size} rows"
    cache, names = Cache(record), list(rows(place))
    left = [name for name in names if "failed" in (cache.get(name, digest) or {"failed": "never measured"})]
    cache.record = {name: row for name, row in cache.record.items() if name not in left}
    cache.write()
    keep = partial(kept, record, digest, about)
    while left and (rest_s := end - time.monotonic()) > 0:
        child = SPAWN.Process(target=measure, args=(rows, place, left, keep))
        child.start()
        child.join(rest_s)
        code = child.exitcode
        child.kill()
        child.join()
        broke = failed(record, left)
        left = [name for name in left if name not in Cache(record).record]
        if code and left and not broke:
            ended = {-signal.SIGALRM: f"took more than {place.limit_s} s"}
            keep(left.pop(0), {"failed": ended.get(code, f"its process ended with code {code}")})
    return left, failed(record, names)


def measure(rows: Rows, place: Place, names: list[str], keep: Callable[[str, Row], None]) -> None:
    """Measures rows up to the first that fails: whatever this row broke in CUDA ends with this process."""
    found = rows(place)
    for name in names:
        signal.alarm(place.limit_s)  # by default it ends the process, inside a library's call too
        try:
            row = found[name]()
        except (InputError, CheckFailed) as error:
            row = {"failed": str(error)}
        except Exception as error:
            traceback.print_exc()
            row = {"failed": f"{type(error).__name__}: {first_line(error)}"}
        signal.alarm(0)
        keep(name, row)
        if "failed" in row:
            return


def kept(record: Path, digest: str, about: dict[str, Any], name: str, row: Row) -> None:
    """Adds the row to the record, and prints its line."""
    Cache(record).put(name, digest, row, about)
    said = (
        f"FAILED  {name}: {row['failed']}" if "failed" in row else f"ok      {name}: {json.dumps(round_figures(row))}"
    )
    print(said, flush=True)


def failed(record: Path, names: list[str]) -> list[str]:
    rows = Cache(record).record
    return [name for name in names if name in rows and "failed" in rows[name]["rows"]]
