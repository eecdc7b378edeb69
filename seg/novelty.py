"""How unsure a network is on the pictures of its own world, so that a live stream can be told from them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from core.errors import InputError
from core.frame import Frame
from core.method import MethodOptions
from core.segmenter import Segmenter
from seg.data.camvid import open_split, read_names
from seg.data.moving_stills import moving_stills
from seg.evaluate import mark_stills
from seg.torch_segmenter import open_torch_segmenter

SHARE = 0.95
"""Of the pictures of its own world that count as usual."""


def mean_entropies(segmenter: Segmenter, frames: Iterable[Frame]) -> list[float]:
    """The mean of the entropy map of each labelled frame, as a share of ln K; the others only feed the temporal mean."""
    return [
        float(maps.entropy.mean()) / 255
        for frame, maps in ((frame, segmenter.step(frame)) for frame in frames)
        if frame.label is not None
    ]


def usual_uncertainty(checkpoint: Path, data: Path, names: Path | None = None) -> dict[str, Any]:
    """What the checkpoint's record says about its usual uncertainty: the 95th percentile over the test images.

    Single pictures in mode dnn, and pictures with made motion in mode vq-dnn, whose mean over frames is less sure.
    `names`: text file of base names, only these. Raises InputError where there are fewer than 20 images.
    """
    single = open_torch_segmenter(checkpoint, MethodOptions(mode="dnn"))
    split = open_split(data, "test", single.classes)
    if names is not None:
        split = split.subset(read_names(names))
    if len(split) < 20:
        raise InputError(f"{data}: {len(split)} test images; a 95th percentile needs 20 or more")
    smoothed = open_torch_segmenter(checkpoint)
    return {
        "mean_entropy_p95": percentile(mean_entropies(single, mark_stills(split.frames()))),
        "steady_mean_entropy_p95": percentile(mean_entropies(smoothed, moving_stills(split))),
        "data": data.name,
        "split": "test",
        "frames": len(split),
        "frame_list_hash": split.frame_hash,
    }


def percentile(values: list[float]) -> float:
    """Six decimals of the 95th percentile."""
    return round(float(np.quantile(values, SHARE)), 6)
