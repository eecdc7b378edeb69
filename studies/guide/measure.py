"""Thresholds of confidence by the accuracy that is wanted, and what remains above them.

    python -m steadyseg.studies.guide.measure --data data road-realtime camvid-unet-s road-mobile

The default method over CamVid's val stream; the thresholds found there are tried on 33 moving stills of test, of other
drives. Neither fitted a temperature. Writes docs/records/guide/record.json and the plot, and the shares at the
thresholds of the page's slider into the records of the included networks.
"""

import argparse
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from steadyseg.core.classes import CAMVID
from steadyseg.core.method import Method, MethodOptions, settings
from steadyseg.core.segmenter import segment
from steadyseg.runtime.open_model import open_segmenter
from steadyseg.seg.data.label_folder import open_split, read_names
from steadyseg.seg.data.moving_stills import moving_stills
from steadyseg.seg.pretrained import find_checkpoint, list_segmenters, read_segmenter
from steadyseg.studies.guide.plot import draw
from steadyseg.studies.harness.networks import rests_on
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.study import PAGES, Cache, data_digest, origin, round_figures

PAGE = PAGES / "guide"
LEVELS = 256
"""Levels of the confidence map."""
WANTED = (0.90, 0.95, 0.97, 0.98, 0.99, 0.995)
"""Shares of right pixels among those that are kept."""
STILLS = 33
"""Moving stills of the 98 that fitted nothing."""
SLIDER = tuple(percent / 100 for percent in range(0, 100, 5))
"""Thresholds of the page's slider."""
SETS = {"val": "CamVid val", "test": "other drives"}
"""Sets of frames, and their names in a network's record."""
CLASSES = ("Car", "Pedestrian", "Bicyclist")
"""Classes whose missed pixels are counted."""


class Counts:
    """Pixels by confidence level, frame by frame."""

    def __init__(self) -> None:
        self.kept: list[np.ndarray] = []
        self.right: list[np.ndarray] = []
        self.of_class = np.zeros((len(CLASSES), LEVELS))
        self.missed = np.zeros((len(CLASSES), LEVELS))
        """Pixels of a class that have another label."""

    def update(self, label: np.ndarray, confidence: np.ndarray, truth: np.ndarray) -> None:
        """(H, W) uint8 each; void pixels do not count."""
        valid = truth != CAMVID.void_id
        label, levels, truth = label[valid], confidence[valid], truth[valid]
        self.kept.append(np.bincount(levels, minlength=LEVELS))
        self.right.append(np.bincount(levels[label == truth], minlength=LEVELS))
        for row, name in enumerate(CLASSES):
            own = truth == CAMVID.names.index(name)
            self.of_class[row] += np.bincount(levels[own], minlength=LEVELS)
            self.missed[row] += np.bincount(levels[own & (label != truth)], minlength=LEVELS)

    def figures(self) -> dict[str, Any]:
        """By threshold 0..255: the share of pixels kept, the accuracy among them, and the share of each class's pixels
        kept under another label. By frame: mean confidence and accuracy."""
        kept, right = (np.array(rows).sum(0) for rows in (self.kept, self.right))
        frames = np.array(self.kept).astype(float)
        confidence = (frames * np.arange(LEVELS)).sum(1) / frames.sum(1) / (LEVELS - 1)
        return {
            "frames": len(frames),
            "kept": (above(kept) / kept.sum()).tolist(),
            "accuracy": (above(right) / np.maximum(above(kept), 1)).tolist(),
            "missed": {
                name: (above(missed) / own.sum()).tolist()
                for name, missed, own in zip(CLASSES, self.missed, self.of_class, strict=True)
            },
            "frame_confidence": confidence.tolist(),
            "frame_accuracy": (np.array(self.right).sum(1) / frames.sum(1)).tolist(),
        }


def above(counts: np.ndarray) -> np.ndarray:
    """(256,) -> counts at each level or higher."""
    return np.asarray(counts[::-1].cumsum()[::-1])


def measure(model: str, camvid: Path) -> dict[str, Any]:
    segmenter, found = open_segmenter(model, MethodOptions()), {}
    fitted = read_names(find_checkpoint("camvid-unet-s").with_name("camvid-test-49.txt"))
    stills = moving_stills(open_split(camvid, "test").without(fitted).spaced(STILLS))
    for name, frames in (("val", open_split(camvid, "val").frames()), ("test", stills)):
        counts = Counts()
        for frame, maps in segment(frames, segmenter):
            if frame.label is not None:
                counts.update(maps.label, maps.confidence, frame.label)
        found[name] = counts.figures()
    return {"method": str(segmenter.method), "backend": segmenter.backend, **found}


def level_of(threshold: float) -> int:
    """Returns the lowest level of the confidence map at or above a threshold, by the rounding of the page."""
    return math.ceil(threshold * (LEVELS - 1))


def threshold_record(method: Method, found: dict[str, Any]) -> dict[str, Any]:
    """What remains at the slider's thresholds, as a network's record holds it."""
    places = [level_of(threshold) for threshold in SLIDER]
    sets = {
        name: {
            "frames": found[key]["frames"],
            "kept": [found[key]["kept"][place] for place in places],
            "right": [found[key]["accuracy"][place] for place in places],
        }
        for key, name in SETS.items()
    }
    record = {**settings(method), "executor": found["backend"], "thresholds": list(SLIDER), "sets": sets}
    return dict(round_figures(record))


def carry(model: str, found: dict[str, Any]) -> None:
    """Writes what remains into the record of an included network; any other file stays as it is."""
    if model in list_segmenters():
        network = read_segmenter(model)
        record = threshold_record(MethodOptions().resolve(network.meta), found)
        if network.meta.thresholds != record:
            network.with_record(replace(network.meta, thresholds=record)).save(network.path)


def guide_digest(model: str, data: str) -> str:
    """The digests of the data and of the weights, and the temperature that the confidence depends on."""
    return rests_on(model, data, MethodOptions())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)
    cache, frames = Cache(PAGE / "record.json"), data_digest(given.data / "camvid")
    for model in given.models:
        digest = guide_digest(model, frames)
        if cache.get(model, digest) is None:
            cache.put(model, digest, measure(model, given.data / "camvid"), origin())
        carry(model, cache.record[model]["rows"])
    draw({name: part["rows"] for name, part in cache.record.items()}, PAGE / "guide.png")
    write_page("guide")


if __name__ == "__main__":
    main()
