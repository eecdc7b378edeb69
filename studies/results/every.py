"""The mean over time, and the network on some frames alone: quality on CamVid's val stream and on a drawn drive.

    python -m steadyseg.studies.results.every --data data/camvid [--fresh]

All rows of a network share its passes; `steadyseg bench` has their speeds. Two minutes on two idle cores; rows of the
same weights and data are kept.
"""

import dataclasses
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.app.sources.open_source import open_source
from steadyseg.core.frame import Frame
from steadyseg.core.method import MethodOptions
from steadyseg.core.options import Every
from steadyseg.core.segmenter import Segmenter
from steadyseg.core.system.machine import cpu_name
from steadyseg.runtime.choose import RunOptions, executor
from steadyseg.runtime.every import carried
from steadyseg.runtime.networks import FrameNetwork
from steadyseg.runtime.open_model import open_checkpoint
from steadyseg.seg.data.label_folder import open_split
from steadyseg.seg.evaluate import FrameMetrics
from steadyseg.studies.harness.networks import rests_on
from steadyseg.studies.harness.study import PAGES, Cache, data_digest, origin, run_command
from steadyseg.studies.harness.tables import read_record, table

STREET = "street:7:60"
SOURCES = {"val": ("road-mobile", "road-realtime"), STREET: ("street-mobile",)}
"""By source its networks: val at 15 Hz, a drawn drive that chose nothing at 25 Hz."""
SINGLE, ARITHMETIC = MethodOptions(mode="dnn"), MethodOptions(average="arithmetic")
GEOMETRIC = MethodOptions(average="geometric")
ROWS: dict[str, tuple[MethodOptions, Every]] = {
    "single frames": (SINGLE, 1),
    "arithmetic mean": (ARITHMETIC, 1),
    "geometric mean": (GEOMETRIC, 1),
    "geometric, every 2": (GEOMETRIC, 2),
    "geometric, every 3": (GEOMETRIC, 3),
    "geometric, auto": (GEOMETRIC, "auto"),
}
"""The method of each row and the frames that have the network; all at the temperature of single frames."""
KEYS = ("accuracy", "miou", "nll", "ece", "consistency")
HEADER = "network frames rule with_the_network accuracy,_% mIoU,_% NLL ECE,_% labels_that_change,_%"


def run(data: Path, fresh: bool) -> None:
    cache, digest = Cache(PAGES / "results" / "every.json"), data_digest(data)
    for source, networks in SOURCES.items():
        for name in networks:
            job, rests = f"{name} on {source}", rests_on(name, digest)
            if fresh or cache.get(job, rests) is None:
                frames = open_split(data, "val").frames() if source == "val" else open_source(source)
                cache.put(job, rests, measure(name, frames), {**origin(), "cpu": cpu_name()})
                print(f"{job}: done", flush=True)


class OneNetwork:
    """A network that all rows share: it computes each picture once."""

    def __init__(self, network: FrameNetwork) -> None:
        self._network, self._logits = network, list[np.ndarray]()
        self._seen: np.ndarray | None = None
        self.scores, self.executor = network.scores, network.executor

    def passes(self, picture: np.ndarray, count: int) -> Iterator[np.ndarray]:
        if self._seen is None or not np.array_equal(self._seen, picture):
            self._seen, self._logits = picture.copy(), [one.copy() for one in self._network.passes(picture, count)]
        yield from self._logits


def measure(name: str, frames: Iterable[Frame]) -> dict[str, dict[str, Any]]:
    model, shared = open_checkpoint(name), dict[Any, OneNetwork]()
    temperature = SINGLE.resolve(model.meta).temperature
    rows = {}

    def take(key: Any, make: Any) -> Any:
        return shared[key] if key in shared else shared.setdefault(key, OneNetwork(make()))

    for row, (options, every) in ROWS.items():
        method = dataclasses.replace(options.resolve(), temperature=temperature)
        rows[row] = Segmenter(carried(executor(model, method, RunOptions(keep_probs=True), take), every))
    metrics = {row: FrameMetrics.of(model.meta.classes) for row in rows}
    for frame in frames:
        for row, segmenter in rows.items():
            maps = segmenter.step(frame)
            metrics[row].update(dataclasses.replace(frame, image=frame.image[::2, ::2], label=half(frame.label)), maps)
    found = {row: metrics[row].result() for row in rows}
    calls = {row: rows[row].network_frames / metrics[row].frames for row in rows}
    ran = rows["single frames"].executor
    return {row: {key: found[row][key] for key in KEYS} | {"network": calls[row], "executor": ran} for row in rows}


def half(label: np.ndarray | None) -> np.ndarray | None:
    """Every second row and column, a quarter of the work of the metrics."""
    return None if label is None else np.ascontiguousarray(label[::2, ::2])


def every_table() -> str:
    """Quality by rule, a line for each network, source and row."""
    lines = []
    for job, found in read_record("results", "every.json").items():
        network, _, source = job.partition(" on ")
        for rule, row in found["rows"].items():
            cells = [f"{100 * row[key]:.2f}" for key in ("accuracy", "miou")]
            cells += [f"{row['nll']:.4f}", f"{100 * row['ece']:.2f}", f"{100 - 100 * row['consistency']:.2f}"]
            frames = "val, 15 Hz" if source == "val" else "drawn drive, 25 Hz"
            lines.append([f"`{network}`", frames, rule, f"{row['network']:.0%}", *cells])
    return table([word.replace("_", " ") for word in HEADER.split()], lines)


if __name__ == "__main__":
    sys.exit(run_command("every", __doc__, run))
