"""The product over streams: its calibration when it smooths over time, and its novelty when the scene is cut.

    python -m studies.novelty.streams --data ../shared/data camvid-unet-s camvid-realtime

The labelled stream is CamVid's val (101 frames at 15 Hz; a drive that training saw the rest of), as it is and under
five of the types that count, severity 3. The cut stream: val, motorway 1, a camera over photographs, val.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from app.open_model import open_segmenter
from core.classes import CAMVID
from core.corruptions.corruptions import corrupt
from core.frame import Frame
from core.method import MethodOptions
from seg.calibrate import ConformalCheck
from seg.evaluate import FrameMetrics
from studies.novelty.by_network import run
from studies.novelty.samples import Data, Sample, motorways, objects, of_split

HZ = 15.0
TYPES = ("clean", "gaussian_noise", "motion_blur", "fog", "brightness", "jpeg_compression")
WAYS = {
    "one": MethodOptions(mode="vq-dnn", motion=False, adaptive=False),
    "frame": MethodOptions(mode="vq-dnn", motion=False, adaptive=True),
    "dropout": MethodOptions(mode="vq-bnn", motion=False, adaptive=True),
}
"""The checkpoint's temperature; that of the frame; the same with one dropout pass a frame."""
CUTS = (("town", 40), ("motorway", 40), ("photographs", 36), ("town", 61))


def val_frames(data: Data, kind: str) -> Iterator[Frame]:
    for place, (_, image, label) in enumerate(of_split(data, "val", list(range(len(data.split("val")))))):
        changed = image if kind == "clean" else corrupt(image, kind, 3, 3, place)
        yield Frame(changed, place, place / HZ, label=label)


def judge(model: str, data: Data, kind: str, way: str) -> dict[str, Any]:
    """Figures over the stream with the published rule; the thresholds of the sets are those fitted on moving stills."""
    torch.manual_seed(0)  # of the masks
    segmenter = open_segmenter(model, WAYS[way], keep_probs=True)
    check = ConformalCheck(segmenter.fit, CAMVID) if "conformal" in segmenter.fit else None
    live, gaps = FrameMetrics.of(CAMVID), []
    for frame in val_frames(data, kind):
        maps = segmenter.step(frame)
        live.update(frame, maps)
        assert frame.label is not None
        kept = frame.label != CAMVID.void_id
        expected = maps.expected_accuracy
        if expected is None:
            expected = float(maps.confidence.mean()) / 255
        gaps.append(abs(expected - float((maps.label == frame.label)[kept].mean())))
        if check:
            check.update(frame, maps, "val")
    found = live.result()
    record = {key: float(found[key]) for key in ("accuracy", "ece", "nll")} | {"expected_error": float(np.mean(gaps))}
    if check:
        sets = check.result()
        record |= {"coverage_asked": sets["coverage_asked"], "coverage": sets["lac"]["coverage"]}
    return record


def cut_stream(data: Data) -> Iterator[tuple[str, Sample]]:
    """Frames of the cut stream, each with the name of its part."""
    towns = [Sample("town", name, image, label) for name, image, label in of_split(data, "val", list(range(101)))]
    parts = {
        "motorway": [sample for sample in motorways(data) if sample.kind == "motorway 1"],
        "photographs": [sample for sample in objects(data) if sample.kind == "moving photographs"],
    }
    for name, count in CUTS:
        shown = towns if name == "town" else parts[name]
        yield from ((name, sample) for sample in shown[:count])
        del shown[:count]


def watch_cuts(model: str, data: Data) -> list[dict[str, Any]]:
    """Novelty and expected accuracy frame by frame, and accuracy where there are labels; default method of the page."""
    segmenter, rows = open_segmenter(model, MethodOptions(mode="vq-dnn")), []
    for place, (name, sample) in enumerate(cut_stream(data)):
        maps = segmenter.step(Frame(sample.image, place, place / HZ))
        row: dict[str, Any] = {"of": name, "novelty": maps.novelty, "expected_accuracy": maps.expected_accuracy}
        if sample.label is not None:
            kept = sample.label != CAMVID.void_id
            row["accuracy"] = float((maps.label == sample.label)[kept].mean())
        rows.append(row)
    return rows


def measure(model: str, data: Data) -> dict[str, Any]:
    types = {kind: {way: judge(model, data, kind, way) for way in WAYS} for kind in TYPES}
    return {"types": types, "cuts": watch_cuts(model, data)}


if __name__ == "__main__":
    run(__doc__, "streams", measure)
