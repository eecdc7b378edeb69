"""Labels as PNGs of class colours or class numbers: a folder with a palette file, and PASCAL VOC's layout."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from steadyseg.core.errors import InputError
from steadyseg.core.system.pictures import look_at
from steadyseg.seg.data.formats.source import (
    SPLITS,
    UNLABELLED,
    Color,
    Label,
    LabelledPicture,
    LabelSource,
    one_line,
    read_json,
)

PALETTE_NAMES = ("labelmap.txt", "label_colors.txt", "class_dict.csv", "classes.json", "palette.txt")
"""File names of palettes: CVAT's and Datumaro's, CamVid's, Kaggle's, ours."""
NOT_A_CLASS = ("void", "unlabelled", "unlabeled", "ignore")
ENDINGS = re.compile(r"(_L|_mask|_labels?|_color)$")
"""Endings of label files' names that their pictures' names do not have."""
THREE_NUMBERS = re.compile(r"(?<![\w.])(\d{1,3})[\s,;]+(\d{1,3})[\s,;]+(\d{1,3})(?![\w.])")
VOC_NAMES = (
    "background aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike person "
    "pottedplant sheep sofa train tvmonitor"
).split()


def read_palette(path: Path) -> dict[str, Color]:
    """Reads class colours: lines with a name and three numbers in either order, or JSON; void is no class.

    JSON is {"name": [r, g, b], ...} or {"names": [...], "colors": [...]}.
    """
    expected = "a class name with red, green and blue on each line, each class in a colour of its own"
    with one_line(path, expected):
        if path.suffix.lower() == ".json":
            content = read_json(path)
            pairs = zip(content["names"], content["colors"], strict=True) if "names" in content else content.items()
            colors = {str(name): _color(values) for name, values in pairs}
        else:
            lines = [line for line in path.read_text(encoding="utf-8-sig").splitlines() if not line.startswith("#")]
            found = [(line, match) for line in lines if (match := THREE_NUMBERS.search(line))]
            colors = {
                (line[: match.start()] + line[match.end() :]).strip(" \t:,;"): _color(match.groups())
                for line, match in found
            }
    colors = {name: color for name, color in colors.items() if name.lower() not in NOT_A_CLASS}
    if len(set(colors.values())) < max(len(colors), 1):
        raise InputError(f"{path}: expected {expected}; got {len(colors)} classes in {len(set(colors.values()))}")
    return colors


def read_colour_pngs(folder: Path, palette: Path) -> LabelSource:
    """Reads PNGs in the palette's colours; a colour of no class is unlabelled."""
    return _open("colour PNGs", sorted(folder.rglob("*.png")), read_palette(palette), {}, in_colours=True)


def read_voc(root: Path, palette: Path | None) -> LabelSource:
    """Reads SegmentationClass/ and the splits of ImageSets/Segmentation/; without a palette VOC's own classes."""
    colors = read_palette(palette) if palette else dict(zip(VOC_NAMES, map(_voc_color, range(21)), strict=True))
    splits = {name: split for split in SPLITS for name in _listed(root / "ImageSets" / "Segmentation" / f"{split}.txt")}
    labels = sorted((root / "SegmentationClass").glob("*.png"))
    return _open("VOC", labels, colors, splits, in_colours=False)


def _open(
    kind: str, labels: Iterable[Path], colors: Mapping[str, Color], splits: Mapping[str, str], *, in_colours: bool
) -> LabelSource:
    table = np.full(2**24, UNLABELLED, np.uint8)  # 16 MB, by 0xRRGGBB
    for class_id, (red, green, blue) in enumerate(colors.values()):
        table[red << 16 | green << 8 | blue] = class_id
    source = LabelSource(kind, tuple(colors), tuple(colors.values()))
    for label in labels:
        stem = ENDINGS.sub("", label.stem)
        read = partial(_read, label, table, len(colors), in_colours)
        source.pictures.append(LabelledPicture(f"{stem}.*", label, read, splits.get(stem, "")))
    return source


def _read(path: Path, table: np.ndarray, count: int, in_colours: bool) -> Label:
    """Reads class numbers or colours; InputError where no pixel has the colour of a class."""

    def look(opened: Image.Image) -> np.ndarray:
        is_numbered = opened.mode in ("P", "L") and not in_colours
        return np.array(opened if is_numbered else opened.convert("RGB"))

    pixels = look_at(path, look)
    if pixels.ndim == 2:
        return Label(np.where(pixels < count, pixels, UNLABELLED).astype(np.uint8))
    channels = pixels.astype(np.uint32)
    ids = table[channels[..., 0] << 16 | channels[..., 1] << 8 | channels[..., 2]]
    unknown = (ids == UNLABELLED) & pixels.any(axis=2)
    if not unknown.any():
        return Label(ids)
    example = tuple(pixels[unknown][0].tolist())
    if unknown.all():
        raise InputError(f"{path}: no pixel has the colour of a class, one is {example}; is this the right palette?")
    return Label(ids, f"{unknown.mean():.2%} of the pixels have the colour of no class (one is {example}) and are void")


def _listed(path: Path) -> Iterator[str]:
    if path.is_file():
        yield from (line.split()[0] for line in path.read_text(errors="replace").splitlines() if line.split())


def _color(values: Iterable[int | str]) -> Color:
    red, green, blue = (int(value) for value in values)
    if not all(0 <= value <= 255 for value in (red, green, blue)):
        raise ValueError(f"a colour of {(red, green, blue)}; its parts lie in 0..255")
    return red, green, blue


def _voc_color(number: int) -> Color:
    """Returns VOC's colour: the bits of a class number, spread over the high bits of red, green and blue."""
    red, green, blue = (sum((number >> (3 * i + first) & 1) << (7 - i) for i in range(3)) for first in range(3))
    return red, green, blue
