"""Draws what the record is made from: FRAMES frames of street:7 with labels, a data folder, and pictures named by
CIFAR-10's classes. `record.py` runs this text in the checkout: FOLDER FRAMES."""

import sys
from pathlib import Path

import cv2
import numpy as np

from steadyseg import Street

CIFAR10 = "airplane automobile bird cat deer dog frog horse ship truck".split()
FAMILIARITY_FRAMES = 60
"""The shortest recording that `calibrate --familiarity` takes."""
PICTURES = 10
"""Largest number of pictures of a class and split."""


def write(path: Path, picture: np.ndarray) -> None:
    """Writes an RGB picture or a label as PNG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not cv2.imwrite(str(path), picture[..., ::-1] if picture.ndim == 3 else picture):
        raise SystemExit(f"{path}: cannot be written")


def draw(folder: Path, frames: int) -> None:
    for frame in Street(seed=7).frames(frames):
        write(folder / "video" / f"{frame.index:06}.png", frame.image)
        write(folder / "labels" / f"{frame.index:06}.png", frame.label)
    for seed, (split, count) in enumerate({"train": FAMILIARITY_FRAMES, "val": 10, "test": 6}.items()):
        for frame in Street(seed=seed, height=144, width=192).frames(count):
            name = f"{split}_{frame.index:06}.png"
            write(folder / "data" / split / name, frame.image)
            write(folder / "data" / f"{split}annot" / name, frame.label)
            for number, word in enumerate(CIFAR10 if frame.index < PICTURES else ()):
                top, left = 56 * (number // 5), 40 * (number % 5)
                write(folder / "pictures" / split / word / name, frame.image[top : top + 32, left : left + 32])


draw(Path(sys.argv[1]), int(sys.argv[2]))
