"""Measures a trained network on the held-out stretches of train: plain, and under the corruptions for tuning."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from steadyseg.app.train.command import LOG_NAME
from steadyseg.core.classes import CAMVID
from steadyseg.core.corruptions.corruptions import TUNING_CORRUPTIONS, corrupt
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.seg.data.camvid import ImageFolderSplit, open_split
from steadyseg.seg.data.held_out import CAMVID_STRETCHES, hold_out
from steadyseg.seg.data.moving_stills import MEASURED_FRAMES, seed_of, still_clip
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.studies.harness.target import DNN, TargetNetwork, at_size_of

RARE = ("Pole", "SignSymbol", "Pedestrian", "Bicyclist")
SEVERITY = 3
Pair = tuple[np.ndarray, np.ndarray]


class HeldOut:
    """The pictures of train that no training of the table saw, with their labels."""

    def __init__(self, camvid: Path) -> None:
        self.pairs, self.names = held_out_pairs(open_split(camvid, "train"))
        total = hashlib.sha256()
        for name, (image, label) in zip(self.names, self.pairs, strict=True):
            total.update(name.encode() + image.tobytes() + label.tobytes())
        self.digest = total.hexdigest()[:12]

    def __len__(self) -> int:
        return len(self.pairs)


def held_out_pairs(split: ImageFolderSplit) -> tuple[list[Pair], list[str]]:
    held = hold_out([example.name for example in split.examples], CAMVID_STRETCHES).held_out
    return [split[i] for i in held], [split.examples[i].name for i in held]


def measure(model: Path, pairs: list[Pair], names: list[str]) -> dict[str, Any]:
    """Figures with dropout off and without temperature: accuracy, mIoU, NLL, ECE, IoU of the rare classes, consistency
    between the last two frames of moving stills, and accuracy by corruption."""
    opened = read_segmenter(model)
    subject = TargetNetwork(model.parent.name, opened.network(), opened.meta, torch.device("cpu"))
    plain = metrics_of(subject, iter(pairs))
    return {
        **{key: plain[key] for key in ("accuracy", "miou", "nll", "ece")},
        "iou": {name: plain["iou"][CAMVID.names.index(name)] for name in RARE},
        "consistency": consistency_of(subject, pairs, names),
        "corrupted": {name: metrics_of(subject, corrupted(pairs, name))["accuracy"] for name in TUNING_CORRUPTIONS},
        "images": len(pairs),
    }


def metrics_of(subject: TargetNetwork, pairs: Iterator[Pair]) -> dict[str, Any]:
    metrics = StreamingMetrics(len(subject), subject.meta.classes.void)
    for image, label in pairs:
        labels = torch.from_numpy(label)[None]
        for _, prediction in subject.predict([image], [DNN], seed=0):
            metrics.update(at_size_of(prediction.probs, labels), labels)
    return metrics.result()


def consistency_of(subject: TargetNetwork, pairs: list[Pair], names: list[str]) -> float:
    """Share of the pixels whose predicted class is the same in a still and in the virtual frame before it."""
    metrics = StreamingMetrics(len(subject), subject.meta.classes.void)
    for name, (image, label) in zip(names, pairs, strict=True):
        clip = still_clip(image, label, subject.meta.classes.void_id, seed_of(name))
        for place, (picture, mask) in enumerate(clip[-MEASURED_FRAMES:]):
            labels = torch.from_numpy(mask)[None]
            for _, prediction in subject.predict([picture], [DNN], seed=0):
                metrics.update(at_size_of(prediction.probs, labels), labels, continues=place > 0)
    return float(metrics.result()["consistency"])


def corrupted(pairs: list[Pair], name: str) -> Iterator[Pair]:
    """Pairs with the picture corrupted at its own size, as in `analyze robustness`."""
    for index, (image, label) in enumerate(pairs):
        yield corrupt(image, name, SEVERITY, index=index), label


def training_hours(run: Path) -> float:
    """Hours of a training: epochs times the median epoch, so that pauses and other work count for little."""
    lines = (run / LOG_NAME).read_text().splitlines()
    epochs = {event["epoch"]: event["seconds"] for event in map(json.loads, lines) if event["event"] == "epoch"}
    return len(epochs) * median(epochs.values()) / 3600
