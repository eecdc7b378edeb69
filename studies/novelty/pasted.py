"""Foreign objects pasted into streets: one object a picture, with a soft edge, at three sizes."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from steadyseg.core.classes import CAMVID
from steadyseg.core.system.pictures import read_upright
from steadyseg.seg.street.drive import Street
from steadyseg.studies.novelty.samples import Data, Sample, drawing, of_split, spread_over

WIDTHS = (1 / 12, 1 / 6, 1 / 3)
"""Widths of an object as shares of the picture's."""
SOFT = 0.04
"""Deviation of the Gaussian that blurs the edge of an object, as a share of its width."""
KINDS = 20
OBJECT, VOID = 1, 255


def reported_objects(data: Data) -> list[np.ndarray]:
    """Reads 20 photographs, each of another ImageNet class."""
    files = sorted((data.folder / "imagenet-sample/imagenet-1k-24").glob("*.JPEG"))
    return [read_upright(file) for file in files[:KINDS]]


def chosen_objects(data: Data) -> list[np.ndarray]:
    """Two small photographs of each of ten other kinds, for choosing."""
    folders = sorted((data.folder / "imagenet-sample/tiny-imagenet-10/val").iterdir())
    return [read_upright(file) for folder in folders for file in first_two(folder)]


def first_two(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.JPEG"))[:2]


def stills(data: Data) -> list[tuple[str, np.ndarray, np.ndarray]]:
    places = spread_over(len(data.split("test")), KINDS * len(WIDTHS))
    return list(of_split(data, "test", places))


def streets(first_seed: int, size: tuple[int, int], count: int) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """A picture of each of so many streets."""
    frames = [Street(first_seed + n, *size).frame(37 * (n % 50) + 1) for n in range(count)]
    return [(f"street{n}", one.image, one.label) for n, one in enumerate(frames) if one.label is not None]


def pasted(scenes: Sequence[tuple[str, np.ndarray, np.ndarray]], objects: Sequence[np.ndarray]) -> Iterator[Sample]:
    """Each object at each size, on one still after the other; the label is `OBJECT` on it, else `VOID` or 0."""
    pairs = itertools.product(objects, WIDTHS)
    for (name, image, label), (photograph, share) in zip(itertools.cycle(scenes), pairs, strict=False):
        mixed, inside = paste(image, photograph, share, drawing("paste", name))
        truth = np.where(inside, OBJECT, np.where(label == CAMVID.void_id, VOID, 0)).astype(np.uint8)
        yield Sample(f"{share:.2f}", name, mixed, truth)


def paste(
    image: np.ndarray, photograph: np.ndarray, share: float, draw: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Puts an ellipse of the photograph at a random place of the lower two thirds; its mask is where it covers half."""
    import cv2

    rows, columns = image.shape[:2]
    width = round(share * columns)
    height = round(width * draw.uniform(0.7, 1.3))
    top, left = int(draw.integers(rows // 3, rows - height)), int(draw.integers(0, columns - width))
    cover = np.zeros((rows, columns), np.float32)
    centre, axes = (left + width // 2, top + height // 2), (width // 2 - 1, height // 2 - 1)
    cv2.ellipse(cover, centre, axes, 0, 0, 360, 1.0, -1)
    cover = np.asarray(cv2.GaussianBlur(cover, (0, 0), max(0.5, SOFT * width)))
    full = image.copy()
    full[top : top + height, left : left + width] = cv2.resize(
        photograph, (width, height), interpolation=cv2.INTER_AREA
    )
    mixed = image + cover[..., None] * (full.astype(np.float32) - image)
    return np.rint(mixed).astype(np.uint8), cover >= 0.5
