"""The images that int8 is fitted on, and the loss of int8 against float32, measured on labelled stills."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from steadyseg.app.sources.open_source import open_source
from steadyseg.core.classes import ClassList
from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.prediction import Prediction
from steadyseg.export.file.subgraph import IMAGE, LOGITS, network_alone
from steadyseg.export.run.sessions import session_runner
from steadyseg.seg.data.camvid import ImageFolderSplit, open_split
from steadyseg.seg.evaluate import enlarge
from steadyseg.seg.streaming import StreamingSegmenter

MAX_FITTED = 64
"""Frames that the scales are fitted on; 33 or more of a longer source."""
MAX_STILLS = 60
"""Labelled stills that the loss is measured on, evenly spaced; each runs through two networks."""
MIOU_LOSS, ECE_CHANGE = 0.01, 0.005
"""Accepted: one point of mean IoU, and half a point of change of the calibration error in either direction."""


@dataclass(frozen=True)
class Loss:
    """Metrics of both networks on the same stills."""

    stills: int
    of: int
    """Number of stills in the whole split."""
    miou: tuple[float, float]
    """float32, int8; shares of 1."""
    ece: tuple[float, float]

    def __str__(self) -> str:
        some = "all" if self.stills == self.of else f"{self.stills} evenly spaced of"
        points = 100 * (self.miou[1] - self.miou[0]), 100 * (self.ece[1] - self.ece[0])
        return (
            f"{some} {self.of} labelled test stills: mean IoU {self.miou[0]:.4f} in fp32, {self.miou[1]:.4f} in int8 "
            f"({points[0]:+.2f} points), ECE {self.ece[0]:.4f} and {self.ece[1]:.4f} ({points[1]:+.2f})"
        )

    @property
    def accepted(self) -> bool:
        return self.miou[0] - self.miou[1] <= MIOU_LOSS and abs(self.ece[1] - self.ece[0]) <= ECE_CHANGE


def check_data(data: Path | None) -> str:
    """Returns the source of the images that int8 is fitted on, for `open_source`; InputError if there is none."""
    if data is None:
        raise InputError(
            "--precision int8 needs --calibration-data: a folder with train/ (labelled test/ and testannot/ measure "
            "the loss), an image folder or a video"
        )
    spec = str(data / "train") if (data / "train").is_dir() else str(data)
    with open_source(spec) as source:
        if source.info.live:
            raise InputError(f"--calibration-data {data}: a live source has no end; give an image folder or a video")
    return spec


def fitting_images(data: Path, module: StreamingSegmenter) -> list[np.ndarray]:
    """Returns at most 64 normalised images (1, 3, h, w), evenly spaced over DATA/train or the source itself."""
    make = partial(network_input, module)
    with open_source(check_data(data)) as source:
        images = subsample_frames((frame.image for frame in source), MAX_FITTED, make)
    if not images:
        raise InputError(f"--calibration-data {data}: holds no frame; give an image folder or a video")
    return images


def subsample_frames(
    frames: Iterator[np.ndarray], limit: int, make: Callable[[np.ndarray], np.ndarray]
) -> list[np.ndarray]:
    """Returns every n-th frame, n the smallest power of 2 that leaves `limit` (even) or fewer.

    The number of frames may be unknown, as some videos do not state it.
    """
    kept: list[np.ndarray] = []
    every = 1
    for number, frame in enumerate(frames):
        if number % every:
            continue
        if len(kept) == limit:
            kept, every = kept[::2], 2 * every  # `limit` is even, so `number` is a multiple of the new `every` too
        kept.append(make(frame))
    return kept


@torch.no_grad()
def network_input(module: StreamingSegmenter, image: np.ndarray) -> np.ndarray:
    """Returns the network's input (1, 3, h, w) float32 of a picture (H, W, 3) uint8."""
    return module.preprocess(torch.from_numpy(image)[None]).contiguous().numpy()


def measure_loss(full: Any, small: Any, module: StreamingSegmenter, classes: ClassList, data: Path) -> Loss | None:
    """Measures both graphs' networks on labelled stills of DATA/test, at most `MAX_STILLS`; None without labels.

    Raises CheckFailed if the loss is larger than accepted.
    """
    if not ((data / "test").is_dir() and (data / "testannot").is_dir()):
        return None
    split = open_split(data, "test", classes)
    chosen = split.spaced(MAX_STILLS)
    results = [metrics_of(network_alone(graph), module, classes, chosen) for graph in (full, small)]
    miou, ece = ((results[0][key], results[1][key]) for key in ("miou", "ece"))
    loss = Loss(len(chosen), len(split), miou, ece)
    if not loss.accepted:
        raise CheckFailed(
            f"int8 costs more than {100 * MIOU_LOSS:g} point of mean IoU or {100 * ECE_CHANGE:g} of ECE, so no file "
            f"was written: {loss}. Give other --calibration-data or use --precision fp16"
        )
    return loss


def metrics_of(network: Any, module: StreamingSegmenter, classes: ClassList, split: ImageFolderSplit) -> dict[str, Any]:
    """Returns the metrics of one network on the stills, with the product's preprocessing before it."""
    run = session_runner(network)
    metrics = StreamingMetrics(len(classes), classes.void_id)
    for number, example in enumerate(split.examples):
        image, label = split[number]
        logits = run({IMAGE: network_input(module, image)})[LOGITS]
        if not np.isfinite(logits).all():
            raise CheckFailed(f"the network gives no number on {example.name}; no file was written")
        probs = Prediction.from_logits(torch.from_numpy(logits), module.method.temperature).probs
        metrics.update(enlarge(probs, label.shape), torch.from_numpy(label)[None].long())
    return metrics.result()
