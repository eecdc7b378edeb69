"""`steadyseg calibrate --int8`: the ranges of a network's convolutions on train images, and what int8 loses on
others."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import track

from core.frame import Frame
from core.model.int8 import measure_ranges
from seg.calibrate import fit_temperature
from seg.data.camvid import open_split
from seg.evaluate import FrameMetrics
from seg.torch_executor import TorchSegmenter

MAX_FITTED = 64
FIGURES = ("accuracy", "miou", "nll", "ece")


def fit_int8(data: Path, segmenter: TorchSegmenter, frames: Callable[[str], Iterable[Frame]]) -> dict[str, Any]:
    """What goes into the checkpoint. The segmenter is at the temperature that was fitted on the labelled `frames`,
    which take a title; the rounded network gets its own there."""
    split = open_split(data, "train", segmenter.classes).spaced(MAX_FITTED)
    images = track(range(len(split)), "int8: ranges", console=Console(stderr=True))
    pictures = (segmenter.module.preprocess(torch.from_numpy(split[place][0])[None]) for place in images)
    ranges = measure_ranges(segmenter.module.predictor.get_submodule("network"), pictures)
    small = segmenter.rounded(ranges)
    own = fit_temperature(small.module, frames("int8: temperature"), segmenter.classes).temperature
    small = small.at_temperature(own)
    full_metrics, small_metrics = FrameMetrics.of(segmenter.classes), FrameMetrics.of(segmenter.classes)
    equal = []
    for frame in frames("int8: loss"):
        full, rounded = segmenter.step(frame), small.step(frame)
        full_metrics.update(frame, full)
        small_metrics.update(frame, rounded)
        equal.append(float((full.label == rounded.label).mean()))
    results = full_metrics.result(), small_metrics.result()
    pairs = {key: [round(float(result[key]), 6) for result in results] for key in FIGURES}
    return {
        "ranges": ranges,
        "fitted": len(split),
        "temperature_ratio": round(own / segmenter.method.temperature, 4),
        "labels_equal": round(sum(equal) / len(equal), 6),
        **pairs,
    }


def describe_int8(record: dict[str, Any], is_proven: bool) -> str:
    """The line for the user."""
    changes = ", ".join(f"{key} {record[key][0]:.4f} to {record[key][1]:.4f}" for key in FIGURES)
    taken = "taken where a processor has no bf16" if is_proven else "loses too much: taken with --precision int8 alone"
    return f"int8: {record['labels_equal']:.1%} of the labels are fp32's, {changes}; {taken}"
