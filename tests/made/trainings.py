"""Data that a tiny network learns at once, parts of trainings, and readers of a training's folder."""

import json
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from made.pictures import save_split
from made.waiting import wait_for
from PIL import Image
from torch import nn

from steadyseg.core.classes import CAMVID
from steadyseg.core.training.parts import Batch, Loss, TrainingParts
from steadyseg.seg.data.formats.source import CLASSES_FILE

CPU = torch.device("cpu")
SMALL_NETWORK = "--size 48 --channels 2 --config".split()
SMALL_NETWORK += "crop_height=32 crop_width=48 precision=fp32 threads=1 loaders=0".split()
TINY_SEGMENTATION = ("--batch-size", "2", *SMALL_NETWORK)
"""Flags of a training of seconds; further settings may follow."""


def accumulating(frames: Path, run: Path, epochs: int) -> list[str]:
    """The command of a training whose steps are of two batches of one picture."""
    flags = ["--epochs", str(epochs), *SMALL_NETWORK, "accumulate=2", "--batch-size", "1", "--device", "cpu"]
    return ["train", "seg", "--data", str(frames), "--run", str(run), *flags]


def made_parts(
    network: nn.Module, batches: Callable[[int], Iterable[Batch]], loss: Loss, steps: int, **changes: Any
) -> TrainingParts:
    """Parts of a training that writes no checkpoint."""

    def describe(seconds: float) -> Any:
        raise NotImplementedError("no checkpoint is written")

    return TrainingParts(network, batches, loss, steps, images=0, held_out=0, describe=describe, **changes)


def boxes_folder(
    root: Path, drawn: Sequence[Sequence[int]], background: int, names: Sequence[str] | None = None
) -> Path:
    """A train split in CamVid's layout: pictures of 48x64 with a coloured box on noise for each class drawn in it.

    They are called 00, 01, ... without `names`.
    """
    generator = np.random.default_rng(0)
    pairs = []
    for i, classes in enumerate(drawn):
        image, label = generator.integers(0, 90, (48, 64, 3), dtype=np.uint8), np.full((48, 64), background, np.uint8)
        for c in classes:
            top, left = generator.integers(0, 36), generator.integers(0, 50)
            image[top : top + 12, left : left + 14] += np.array([c * 14, 160 - c * 13, c % 4 * 40], np.uint8)
            label[top : top + 12, left : left + 14] = c
        pairs.append((names[i] if names else f"{i:02}", image, label))
    save_split(root, "train", pairs)
    record = {"names": CAMVID.names, "colors": CAMVID.colors, "void": CAMVID.void}
    (root / CLASSES_FILE).write_text(json.dumps(record))
    return root


def camvid_names(around: int = 3) -> list[str]:
    """The names of CamVid's held-out stills and of so many stills on either side of each block."""
    recordings = (("0001TP_{:06}", 7560, 7770), ("0006R0_f{:05}", 3330, 3660), ("0016E5_{:05}", 1710, 2280))
    return [
        form.format(number)
        for form, first, last in recordings
        for number in range(first - 30 * around, last + 30 * around + 1, 30)
    ]


def colours_folder(root: Path, colours: Mapping[str, tuple[int, int, int]], count: int) -> Path:
    """An ImageFolder without a test split: so many noisy pictures of 20x24 of each colour, a class each."""
    generator = np.random.default_rng(0)
    for name, colour in colours.items():
        (root / "train" / name).mkdir(parents=True)
        for i in range(count):
            image = generator.integers(0, 90, (20, 24, 3), dtype=np.uint8) + np.array(colour, np.uint8)
            Image.fromarray(image).save(root / "train" / name / f"{i}.png")
    return root


def epochs_logged(run: Path) -> int:
    log = run / "log.jsonl"
    return log.read_text().count('"event": "epoch"') if log.exists() else 0


def wait_for_epochs(run: Path, epochs: int, training: "subprocess.Popen[Any]") -> None:
    """Waits until so many epochs are logged, or until the training has ended."""
    wait_for(lambda: epochs_logged(run) >= epochs or training.poll() is not None)


def events(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
