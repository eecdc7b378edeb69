"""`steadyseg calibrate --int8`: the ranges of the convolutions on train images, and the loss of int8 on others."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from steadyseg.app.console import track
from steadyseg.core.evaluation.temperature import GRID, WIDE_GRID
from steadyseg.core.frame import Frame
from steadyseg.core.model.int8 import measure_ranges
from steadyseg.core.segmenter import Segmenter
from steadyseg.runtime.torch_executor import TorchExecutor
from steadyseg.seg.calibrate import fit_temperature
from steadyseg.seg.data.label_folder import open_split
from steadyseg.seg.evaluate import FrameMetrics

MAX_FITTED = 64
FIGURES = ("accuracy", "miou", "nll", "ece")


def fit_int8(data: Path, executor: TorchExecutor, frames: Callable[[str], Iterable[Frame]]) -> dict[str, Any]:
    """Returns the int8 record of a checkpoint. `frames(title)` gives the labelled frames of the executor's temperature
    fit; the rounded network's own temperature is fitted on the same frames.
    """
    split = open_split(data, "train", executor.classes).spaced(MAX_FITTED)
    images = track(range(len(split)), "int8: ranges")
    pictures = (executor.module.preprocess(torch.from_numpy(split[place][0])[None]) for place in images)
    ranges = measure_ranges(executor.network, pictures)
    rounded = executor.rounded(ranges)
    # Rounding changed the temperature of each included network by at most 1 %. Neighbours on the grid differ by 20 %.
    grid = GRID if GRID[1] <= executor.method.temperature <= GRID[-2] else WIDE_GRID
    temperature = fit_temperature(rounded.module, frames("int8: temperature"), executor.classes, grid).temperature
    metrics = [FrameMetrics.of(executor.classes) for _ in range(2)]
    segmenters = Segmenter(executor), Segmenter(rounded.at_temperature(temperature))
    equal = []
    for frame in frames("int8: loss"):
        full, small = (segmenter.step(frame) for segmenter in segmenters)
        for total, maps in zip(metrics, (full, small), strict=True):
            total.update(frame, maps)
        equal.append(float((full.label == small.label).mean()))
    results = [total.result() for total in metrics]
    pairs = {key: [round(float(result[key]), 6) for result in results] for key in FIGURES}
    return {
        "ranges": ranges,
        "fitted": len(split),
        "temperature_ratio": round(temperature / executor.method.temperature, 4),
        "labels_equal": round(sum(equal) / len(equal), 6),
        **pairs,
    }


def describe_int8(record: dict[str, Any], is_proven: bool) -> str:
    """Describes the record in one line."""
    changes = ", ".join(f"{key} {record[key][0]:.4f} to {record[key][1]:.4f}" for key in FIGURES)
    taken = (
        "taken where a processor has no bf16 or is slower in it"
        if is_proven
        else "loses too much: taken with --precision int8 alone"
    )
    return f"int8: {record['labels_equal']:.1%} of the labels are fp32's, {changes}; {taken}"
