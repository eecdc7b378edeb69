"""Labels as PNGs of class colours or class numbers: a folder with a palette file, and PASCAL VOC's layout."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from steadyseg.core.classes import distinct_colors
from steadyseg.core.errors import InputError, shorten
from steadyseg.core.system.file_names import Names, known_name, listed_names
from steadyseg.core.system.files import read_small
from steadyseg.core.system.pictures import look_at
from steadyseg.seg.data.formats.source import (
    NOT_A_CLASS,
    SPLIT_NAMES,
    SPLITS,
    UNLABELLED,
    Color,
    Label,
    LabelledPicture,
    LabelSource,
    files_below,
    one_line,
    read_json,
)

PALETTE_NAMES = ("labelmap.txt", "label_colors.txt", "class_dict.csv", "classes.json", "palette.txt", "_classes.csv")
"""File names of palettes: CVAT's and Datumaro's, CamVid's, Kaggle's, ours, Roboflow's."""
ENDINGS = re.compile(r"(_L|_mask|_labels?|_color)$")
"""Endings of label files' names that their pictures' names do not have."""
LOSSY = (".jpg", ".jpeg", ".webp")
"""Suffixes of formats with lossy compression, which changes the colours of a mask."""
LOSSLESS = (".png", ".bmp", ".tif", ".tiff")
OF_MASKS = re.compile(r"(^|[-_ ])(masks?|labels?|annotations?|gt|groundtruth)($|[-_ ])|annot$|^segmentation", re.I)
"""In the name of a folder of masks."""
Palette = tuple[dict[str, Color], list[int], bool]
"""Colours by class name. Class ids by the number in a mask, UNLABELLED for void and -1 for no class. True if masks hold
numbers and the file has no colours."""
NUMBERS = re.compile(r"(?<![\w.])\d+(?![\w.])")
THREE_NUMBERS = re.compile(r"(?<![\w.])(\d+)[\s,;]+(\d+)[\s,;]+(\d+)(?![\w.])")
VOC_NAMES = (
    "background aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike person "
    "pottedplant sheep sofa train tvmonitor"
).split()


def read_palette(path: Path) -> Palette:
    """Reads class colours: lines with a name and three numbers in either order, or JSON; or ids: a number and a name.

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
            lines = read_small(path).decode("utf-8-sig").splitlines()
            rows = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
            if rows and not NUMBERS.search(rows[0]):
                del rows[0]  # a header
            if (ids := list(filter(None, map(_name_and_id, rows)))) and len(ids) == len(rows):
                return _palette_of_ids(ids)
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
    places = {name: class_id for class_id, name in enumerate(classes)}
    return classes, [places.get(name, UNLABELLED) for name in colors], False


def _palette_of_ids(found: Sequence[tuple[str, int]]) -> Palette:
    """Makes a palette of (name, number in the masks)."""
    numbers = {number: name for name, number in found}
    if len({*numbers.values()}) < len(found) or max(numbers) > UNLABELLED:
        raise ValueError(f"two equal names or numbers, or a number beyond {UNLABELLED}")
    names = [name for name in numbers.values() if name.lower() not in NOT_A_CLASS]
    ids = dict.fromkeys(numbers.values(), UNLABELLED) | {name: place for place, name in enumerate(names)}
    rows = [ids.get(numbers.get(number, ""), -1 if number else UNLABELLED) for number in range(max(numbers) + 1)]
    return dict(zip(names, distinct_colors(len(names)), strict=True)), rows, True


def _name_and_id(line: str) -> tuple[str, int] | None:
    """Returns what a line "0, background" or "0 background" means; None for any other line."""
    fields = [field.strip() for field in re.split(r"[:,;\t]", line) if field.strip()]
    if len(fields) < 2 and (fields := line.split(maxsplit=1))[0].isdecimal() and THREE_NUMBERS.search(fields[-1]):
        return None  # a number, a colour and a name
    numbers = [field for field in fields if field.isdecimal()]
    named = [field for field in fields if not field.isdecimal()]
    return (named[0], int(numbers[0])) if len(fields) == 2 and len(numbers) == 1 else None


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
    """Reads masks in the palette's colours, or of its ids; a colour of no class is unlabelled.

    Where folders are named as masks (masks/, train_labels/), all masks are in them. Beside NAME_mask.png, NAME.png is
    the picture. A folder may be named as a split.
    """

    def is_mask(path: Path) -> bool:
        return any(map(OF_MASKS.search, path.relative_to(folder).parts[:-1]))

    found = files_below(folder, LOSSLESS)
    if any(map(is_mask, found)):
        found = [path for path in found if is_mask(path) or ENDINGS.search(path.stem)]
    pictures = {bare for path in found if (bare := ENDINGS.sub("", path.stem)) != path.stem}
    labels = [path for path in found if path.stem not in pictures]
    stems = {path.stem for path in labels}
    lossy = [path for path in files_below(folder, LOSSY) if ENDINGS.search(path.stem) or is_mask(path)]
    _refuse_lossy(path for path in lossy if path.stem not in stems)
    splits = {path: _split_of(path.relative_to(folder).parts[:-1]) for path in labels}
    known = read_palette(palette)
    return _open("masks", labels, known, splits, in_colours=not known[2])


def _split_of(folders: Iterable[str]) -> str:
    words = [word for name in folders for word in re.split(r"[-_ ]|annot$", name.lower())]
    return next((word for word in words if word in SPLIT_NAMES), "")


def read_voc(root: Path, palette: Path | None) -> LabelSource:
    """Reads SegmentationClass/ and the splits of ImageSets/Segmentation/. Without a palette, the classes are VOC's."""
    _refuse_lossy(files_below(root / "SegmentationClass", LOSSY))
    of_voc = dict(zip(VOC_NAMES, map(_voc_color, range(21)), strict=True)), [*range(21)], False
    labels = files_below(root / "SegmentationClass", (".png",))
    listed = {split: listed_names(root / "ImageSets" / "Segmentation" / f"{split}.txt") for split in SPLITS}
    known = Names(path.stem for path in labels)
    of_name = {known_name(name, known): split for split, names in listed.items() for name in names}
    splits = {path: of_name.get(path.stem, "") for path in labels}
    return _open("VOC", labels, read_palette(palette) if palette else of_voc, splits, in_colours=False)


def _refuse_lossy(found: Iterable[Path]) -> None:
    if (path := next(iter(found), None)) is not None:
        raise InputError(f"{path}: the compression of such a file changes the colours of a mask; export masks as PNG")


def _open(
    kind: str, labels: Iterable[Path], palette: Palette, splits: Mapping[Path, str], *, in_colours: bool
) -> LabelSource:
    colors, rows, is_of_ids = palette
    by_number = np.array([*rows, *[-1] * (255 - len(rows)), -1 if is_of_ids else UNLABELLED])
    table = color_table([*enumerate(colors.values())], UNLABELLED)
    source = LabelSource(kind, tuple(colors), tuple(colors.values()))
    for label in labels:
        read = partial(_read, label, table, by_number, in_colours)
        named = "/".join(filter(None, (splits[label], f"{ENDINGS.sub('', label.stem)}.*")))
        source.pictures.append(LabelledPicture(named, label, read, splits[label]))
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


def _read(path: Path, table: np.ndarray, by_number: np.ndarray, in_colours: bool, _: Any = None) -> Label:
    """Reads class numbers or colours; InputError where no pixel has the number or the colour of a class."""

    def look(opened: Image.Image) -> np.ndarray:
        is_numbered = opened.mode in ("P", "L") and not in_colours
        return np.array(opened if is_numbered else opened.convert("RGB"))

    pixels = look_at(path, look)
    what = "number" if pixels.ndim == 2 else "colour"
    if pixels.ndim == 2:
        unknown = by_number[pixels] < 0
        ids = np.where(unknown, UNLABELLED, by_number[pixels]).astype(np.uint8)
    else:
        ids = table[color_codes(pixels)]
        unknown = (ids == UNLABELLED) & pixels.any(axis=2)
    if not unknown.any():
        return Label(ids)
    example = tuple(pixels[unknown][0].tolist()) if what == "colour" else pixels[unknown][0]
    if unknown.all():
        raise InputError(f"{path}: no pixel has the {what} of a class, one is {example}; is this the right palette?")
    return Label(ids, f"{unknown.mean():.2%} of the pixels have the {what} of no class (one is {example}) and are void")


def _color(values: Iterable[int | str]) -> Color:
    red, green, blue = (int(value) for value in values)
    if not all(0 <= value <= 255 for value in (red, green, blue)):
        raise ValueError(f"a colour of {(red, green, blue)}; its parts lie in 0..255")
    return red, green, blue


def _voc_color(number: int) -> Color:
    """Returns VOC's colour: the bits of a class number, spread over the high bits of red, green and blue."""
    red, green, blue = (sum((number >> (3 * i + first) & 1) << (7 - i) for i in range(3)) for first in range(3))
    return red, green, blue
