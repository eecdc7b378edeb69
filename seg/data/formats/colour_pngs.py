"""Labels as PNGs of class colours or class numbers: a folder with a palette file, and PASCAL VOC's layout."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from steadyseg.core.errors import InputError, shorten
from steadyseg.core.system.pictures import look_at
from steadyseg.seg.data.formats.source import (
    SPLITS,
    UNLABELLED,
    Color,
    Label,
    LabelledPicture,
    LabelSource,
    files_below,
    listed_names,
    one_line,
    read_json,
)

PALETTE_NAMES = ("labelmap.txt", "label_colors.txt", "class_dict.csv", "classes.json", "palette.txt")
"""File names of palettes: CVAT's and Datumaro's, CamVid's, Kaggle's, ours."""
NOT_A_CLASS = ("void", "unlabelled", "unlabeled", "ignore")
ENDINGS = re.compile(r"(_L|_mask|_labels?|_color)$")
"""Endings of label files' names that their pictures' names do not have."""
LOSSY = (".jpg", ".jpeg", ".webp")
"""Suffixes of formats with lossy compression, which changes the colours of a mask."""
Palette = tuple[dict[str, Color], list[int]]
"""Colours by class name, and class ids by the number in a mask. A number of void has the id UNLABELLED."""
NUMBERS = re.compile(r"(?<![\w.])\d+(?![\w.])")
THREE_NUMBERS = re.compile(r"(?<![\w.])(\d+)[\s,;]+(\d+)[\s,;]+(\d+)(?![\w.])")
VOC_NAMES = (
    "background aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike person "
    "pottedplant sheep sofa train tvmonitor"
).split()


def read_palette(path: Path) -> Palette:
    """Reads class colours: lines with a name and three numbers in either order, or JSON.

    JSON is {"name": [r, g, b], ...} or {"names": [...], "colors": [...]}. A name may have a number if commas or colons
    part it from the colour. InputError for any other fourth number, such as an id or an alpha.
    """
    expected = "a class name with red, green and blue on each line, each class in a name and a colour of its own"
    with one_line(path, expected):
        if path.suffix.lower() == ".json":
            content = read_json(path)
            pairs = zip(content["names"], content["colors"], strict=True) if "names" in content else content.items()
            colors = {str(name): _color(values) for name, values in pairs}
        else:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
            rows = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
            if rows and not NUMBERS.search(rows[0]):
                del rows[0]  # a header
            found = [_name_and_color(path, row) for row in rows]
            colors = dict(found)
            if len(colors) < len(found):
                name, _ = Counter(name for name, _ in found).most_common(1)[0]
                raise InputError(f"{path}: expected {expected}; two lines are of {shorten(name)}")
    classes = {name: color for name, color in colors.items() if name.lower() not in NOT_A_CLASS}
    if len(classes) > UNLABELLED:
        raise InputError(f"{path}: has {len(classes)} classes; at most {UNLABELLED} are possible")
    if len(set(classes.values())) < max(len(classes), 1):
        raise InputError(f"{path}: expected {expected}; got {len(classes)} classes in {len(set(classes.values()))}")
    ids = {name: class_id for class_id, name in enumerate(classes)}
    return classes, [ids.get(name, UNLABELLED) for name in colors]


def _name_and_color(path: Path, line: str) -> tuple[str, Color]:
    """Returns the name and the colour that a palette's line has; InputError where a number may mean something else."""
    fields = [field.strip() for field in re.split(r"[:,;\t]", line) if field.strip()]
    numbers = [field for field in fields if field.isdigit()]
    if len(numbers) == 3 and len(fields) == 4:  # name,r,g,b
        return next(field for field in fields if field not in numbers), _color(numbers)
    of_three = [match for field in fields if (match := THREE_NUMBERS.fullmatch(field))]
    if len(of_three) == 1 and len(fields) > 1 and not numbers:  # name:r g b
        return next(field for field in fields if field != of_three[0][0]), _color(of_three[0].groups())
    if (named := re.fullmatch(r"([^:]+):(\d+),(\d+),(\d+)(:.*)?", line)) is not None:  # CVAT's name:r,g,b:...
        return named[1].strip(), _color(named.groups()[1:4])
    match = THREE_NUMBERS.search(line)
    if match is None or len(NUMBERS.findall(line)) != 3:
        raise InputError(
            f"{path}: expected name,red,green,blue without ids and alpha, got {shorten(line)}; without the commas a "
            "name has no number"
        )
    return (line[: match.start()] + line[match.end() :]).strip(" \t:,;"), _color(match.groups())


def read_colour_pngs(folder: Path, palette: Path) -> LabelSource:
    """Reads PNGs in the palette's colours; a colour of no class is unlabelled. Beside NAME_mask.png, NAME.png is the
    picture.
    """
    pngs = files_below(folder, (".png",))
    pictures = {path.with_name(f"{bare}.png") for path in pngs if (bare := ENDINGS.sub("", path.stem)) != path.stem}
    lossy = [path for path in files_below(folder, LOSSY) if ENDINGS.search(path.stem)]
    _refuse_lossy(path for path in lossy if path.with_suffix(".png") not in pngs)
    labels = [path for path in pngs if path not in pictures]
    return _open("colour PNGs", labels, read_palette(palette), {}, in_colours=True)


def read_voc(root: Path, palette: Path | None) -> LabelSource:
    """Reads SegmentationClass/ and the splits of ImageSets/Segmentation/. Without a palette, the classes are VOC's."""
    _refuse_lossy(files_below(root / "SegmentationClass", LOSSY))
    of_voc = dict(zip(VOC_NAMES, map(_voc_color, range(21)), strict=True)), [*range(21)]
    listed = {split: listed_names(root / "ImageSets" / "Segmentation" / f"{split}.txt") for split in SPLITS}
    splits = {name: split for split, names in listed.items() for name in names}
    labels = files_below(root / "SegmentationClass", (".png",))
    return _open("VOC", labels, read_palette(palette) if palette else of_voc, splits, in_colours=False)


def _refuse_lossy(found: Iterable[Path]) -> None:
    if (path := next(iter(found), None)) is not None:
        raise InputError(f"{path}: the compression of such a file changes the colours of a mask; export masks as PNG")


def _open(
    kind: str, labels: Iterable[Path], palette: Palette, splits: Mapping[str, str], *, in_colours: bool
) -> LabelSource:
    colors, rows = palette
    by_number = np.array(rows + 256 * [UNLABELLED], np.uint8)
    table = color_table([*enumerate(colors.values())], UNLABELLED)
    source = LabelSource(kind, tuple(colors), tuple(colors.values()))
    for label in labels:
        stem = ENDINGS.sub("", label.stem)
        read = partial(_read, label, table, by_number, in_colours)
        source.pictures.append(LabelledPicture(f"{stem}.*", label, read, splits.get(stem, "")))
    return source


def color_codes(colors: np.ndarray) -> np.ndarray:
    """(..., 3) RGB -> (...) uint32 0xRRGGBB."""
    channels = colors.astype(np.uint32)
    return channels[..., 0] << 16 | channels[..., 1] << 8 | channels[..., 2]


def color_table(colors: Sequence[tuple[int, Color]], void: int) -> np.ndarray:
    """Returns the table (2^24,) uint8 of class ids by colour code, `void` elsewhere: 16 MB, ten times faster than a
    search."""
    table = np.full(2**24, void, np.uint8)
    table[color_codes(np.array([color for _, color in colors]))] = [class_id for class_id, _ in colors]
    return table


def _read(path: Path, table: np.ndarray, by_number: np.ndarray, in_colours: bool) -> Label:
    """Reads class numbers or colours; InputError where no pixel has the colour of a class."""

    def look(opened: Image.Image) -> np.ndarray:
        is_numbered = opened.mode in ("P", "L") and not in_colours
        return np.array(opened if is_numbered else opened.convert("RGB"))

    pixels = look_at(path, look)
    if pixels.ndim == 2:
        return Label(by_number[pixels])
    ids = table[color_codes(pixels)]
    unknown = (ids == UNLABELLED) & pixels.any(axis=2)
    if not unknown.any():
        return Label(ids)
    example = tuple(pixels[unknown][0].tolist())
    if unknown.all():
        raise InputError(f"{path}: no pixel has the colour of a class, one is {example}; is this the right palette?")
    return Label(ids, f"{unknown.mean():.2%} of the pixels have the colour of no class (one is {example}) and are void")


def _color(values: Iterable[int | str]) -> Color:
    red, green, blue = (int(value) for value in values)
    if not all(0 <= value <= 255 for value in (red, green, blue)):
        raise ValueError(f"a colour of {(red, green, blue)}; its parts lie in 0..255")
    return red, green, blue


def _voc_color(number: int) -> Color:
    """Returns VOC's colour: the bits of a class number, spread over the high bits of red, green and blue."""
    red, green, blue = (sum((number >> (3 * i + first) & 1) << (7 - i) for i in range(3)) for first in range(3))
    return red, green, blue
