"""`steadyseg calibrate --int8`: the ranges of the convolutions on train images, and the loss of int8 on others."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from steadyseg.app.console import track
from steadyseg.core.evaluation.temperature import GRID, WIDE_GRID
from steadyseg.core.frame import Frame
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.model.int8 import measure_corrections, measure_ranges
from steadyseg.core.model.tensor_file import INT8_PREFIX
from steadyseg.core.segmenter import Segmenter
from steadyseg.runtime.torch_backend import TorchBackend
from steadyseg.seg.calibrate import fit_temperature
from steadyseg.seg.data.label_folder import open_split
from steadyseg.seg.evaluate import FrameMetrics

MAX_FITTED = 64
CORRECTED_STEP = 4
"""The corrections are fitted on every so many of the pictures."""
FIGURES = ("accuracy", "miou", "nll", "ece")


@dataclass(frozen=True)
class Int8Fit:
    """Record and tensors of an int8 fit, as they go into a checkpoint."""

    record: dict[str, Any]
    tensors: dict[str, torch.Tensor]


def fit_int8(data: Path, backend: TorchBackend, frames: Callable[[str], Iterable[Frame]]) -> Int8Fit:
    """Fits int8. `frames(title)` gives the labelled frames of the backend's temperature fit; the rounded network's own
    temperature is fitted on the same frames.
    """
    split = open_split(data, "train", backend.classes).spaced(MAX_FITTED)

    def pictures(title: str, step: int = 1) -> Iterator[torch.Tensor]:
        for place in track(range(0, len(split), step), title):
            yield backend.module.preprocess(torch.from_numpy(split[place][0])[None].to(backend.device))

    ranges = measure_ranges(backend.network, pictures("int8: ranges"))
    means = measure_corrections(backend.network, ranges, pictures("int8: corrections", CORRECTED_STEP))
    corrections = {name: mean.half().cpu() for name, mean in means.items()}
    rounded = backend.rounded(ranges, corrections)
    # Rounding changed the temperature of each included network by at most 1 %. Neighbours on the grid differ by 20 %.
    grid = GRID if GRID[1] <= backend.method.temperature <= GRID[-2] else WIDE_GRID
    temperature = fit_temperature(rounded.module, frames("int8: temperature"), backend.classes, grid).temperature
    metrics = [FrameMetrics.of(backend.classes) for _ in range(2)]
    segmenters = Segmenter(backend), Segmenter(rounded.at_temperature(temperature))
    equal = []
    for frame in frames("int8: loss"):
        full, small = (segmenter.step(frame) for segmenter in segmenters)
        for total, maps in zip(metrics, (full, small), strict=True):
            total.update(frame, maps)
        equal.append(float((full.label == small.label).mean()))
    results = [total.result() for total in metrics]
    pairs = {key: [round(float(result[key]), 6) for result in results] for key in FIGURES}
    record = {
        "ranges": ranges,
        "fitted": len(split),
        "temperature_ratio": round(temperature / backend.method.temperature, 4),
        "labels_equal": round(sum(equal) / len(equal), 6),
        **pairs,
    }
    return Int8Fit(record, {INT8_PREFIX + name: one for name, one in corrections.items()})


def describe_int8(meta: CheckpointMeta) -> str:
    """Describes the record of int8 in one line."""
    record = meta.int8
    changes = ", ".join(f"{key} {record[key][0]:.4f} to {record[key][1]:.4f}" for key in FIGURES)
    taken = "taken where a processor has no bf16 or is slower in it"
    if not meta.int8_is_proven:
        why = "familiarity is not fitted in it" if meta.int8_lacks_familiarity else "it loses too much"
        taken = f"taken with --precision int8 alone: {why}"
    return f"int8: {record['labels_equal']:.1%} of the labels are fp32's, {changes}; {taken}"
