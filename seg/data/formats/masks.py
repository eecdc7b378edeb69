"""Outlined objects as label tools store them, as polygons and run lengths, and their painting into one label."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, NamedTuple

import numpy as np

from steadyseg.core.system.pictures import MAX_PICTURE_PIXELS
from steadyseg.seg.data.formats.source import UNLABELLED, Label

FARTHEST = 1e6
"""Largest coordinate of a corner, in pixels; corners beyond are moved there."""

MAX_LETTERS = 7
"""Letters of a compressed run length: pycocotools' 32 bits and a sign, 5 bits a letter."""

Size = tuple[Any, Any] | None
"""(height, width), if known."""
Overlaps = Literal["smaller", "later", "void"]
WINNERS = {"smaller": "the smaller object has them", "later": "the later object has them", "void": "they are void"}


def fill_polygon(corners: Any, height: int, width: int) -> np.ndarray:
    """Fills a polygon with corners (N, 2) of x, y in pixels; returns (height, width) bool.

    A pixel is filled if its centre lies inside by the even-odd rule, so polygons that share an edge share no pixel.
    ValueError for corners that are not finite numbers.
    """
    points = np.asarray(corners, np.float64)
    if points.size % 2 or points.ndim not in (1, 2):
        raise ValueError("the corners of a polygon are no pairs of x and y")
    points = points.reshape(-1, 2).clip(-FARTHEST, FARTHEST)
    if not np.isfinite(points).all():
        raise ValueError("a corner of a polygon is not a finite number")
    crossings = np.zeros((height, width + 1), np.int16)
    following = np.roll(points, -1, axis=0)
    turned = points[:, 1] > following[:, 1]  # an edge has the same rounding in both directions
    points[turned], following[turned] = following[turned], points[turned]
    for (x0, y0), (x1, y1) in zip(points, following, strict=True):
        first, last = np.ceil(np.clip([y0, y1], 0, height) - 0.5).astype(int)
        rows = np.arange(max(first, 0), last)
        if len(rows):
            columns = np.ceil(x0 + (rows + 0.5 - y0) * (x1 - x0) / (y1 - y0) - 0.5)
            crossings[rows, columns.clip(0, width).astype(int)] += 1
    return (crossings.cumsum(axis=1, dtype=np.int16)[:, :width] % 2).astype(bool)


def fill_runs(lengths: Sequence[int], count: int) -> np.ndarray:
    """Expands alternating run lengths, beginning with False, to (count,) bool; ValueError for lengths that do not fit.

    The sum is Python's, as int64 wraps: np.repeat writes beyond its result for four lengths of 2**62.
    """
    if min(lengths, default=0) < 0:
        raise ValueError(f"one of its run lengths is negative: {min(lengths)}")
    if (total := sum(lengths)) != count:
        raise ValueError(f"its run lengths add up to {total} pixels, and the mask has {count}")
    return np.repeat(np.arange(len(lengths)) % 2 == 1, np.asarray(lengths, np.int64))


def place_part(part: np.ndarray, top: int, left: int, height: int, width: int) -> np.ndarray:
    """Returns a mask (height, width) bool with a part at its place; ValueError for a part that leaves the picture."""
    if min(top, left) < 0 or top + part.shape[0] > height or left + part.shape[1] > width:
        raise ValueError(f"a mask at {left},{top} of {part.shape[1]}x{part.shape[0]} leaves the picture")
    mask = np.zeros((height, width), bool)
    mask[top : top + part.shape[0], left : left + part.shape[1]] = part
    return mask


def decode_coco_rle(counts: str | Sequence[int], height: int, width: int) -> np.ndarray:
    """Decodes COCO's run lengths, a list or the compressed text, down the columns; returns (height, width) bool."""
    lengths = _coco_lengths(counts) if isinstance(counts, str) else counts
    return fill_runs(lengths, height * width).reshape(width, height).T


def _coco_lengths(text: str) -> list[int]:
    """Reads numbers of 5 bits per letter, lowest bits first; from the fourth on, each number is relative to the number
    two before it. The bits are a letter's code minus 48. Bit 5 is set if another letter follows; bit 4 of the last
    letter is the sign (pycocotools, common/maskApi.c: rleFrString). ValueError for a number of more than MAX_LETTERS,
    whose bits would take quadratic time.
    """
    lengths: list[int] = []
    value = shift = 0
    for code in text.encode("ascii"):
        digit = code - 48
        value |= (digit & 0x1F) << shift
        shift += 5
        if shift > 5 * MAX_LETTERS:
            raise ValueError(f"one of its run lengths has more than {MAX_LETTERS} letters")
        if not digit & 0x20:
            value -= (1 << shift) if digit & 0x10 else 0
            lengths.append(value + (lengths[-2] if len(lengths) > 2 else 0))
            value = shift = 0
    return lengths


def decode_brush(data: Sequence[int], height: int, width: int) -> np.ndarray:
    """Decodes Label Studio's brush, an RGBA picture in bytes of its run-length code; returns (height, width) bool.

    A header has the number of values (32 bits), the bits of a value - 1 (5) and four sizes - 1 (4 each). Then come
    blocks: a bit (1: one value for all, 0: a value each), the size (2) in which the block's length - 1 follows, and the
    values (thi.ng/rle-pack). A pixel is painted where alpha is not 0.
    """
    packed = np.asarray(data)
    if packed.ndim != 1 or packed.size == 0 or packed.min() < 0 or packed.max() > 255:
        raise ValueError("its rle is no list of bytes")
    bits = (np.unpackbits(packed.astype(np.uint8)) + ord("0")).tobytes().decode()
    position = 0

    def read(size: int) -> int:
        nonlocal position
        position += size
        return int(bits[position - size : position], 2)

    count, word = read(32), read(5) + 1
    sizes = [read(4) + 1 for _ in range(4)]
    if count != height * width * 4:
        raise ValueError(f"its rle has {count} values; {width}x{height} RGBA pixels have {height * width * 4}")
    values, at = np.zeros(count, np.uint32), 0
    while at < count:
        is_run = read(1)
        end = at + 1 + read(sizes[read(2)])
        if is_run:
            values[at:end] = read(word)
        else:
            values[at:end] = [read(word) for _ in range(min(end, count) - at)]
        at = end
    return values.reshape(height, width, 4)[..., 3] > 0


@dataclass(frozen=True)
class Outline:
    """Polygons of one object, with corners as the label file has them."""

    parts: Sequence[Any]
    """Of each polygon the corners (N, 2), or x and y in turns."""
    side: int | None = None
    """Coordinate of the picture's far sides: 1 for shares, 100 for percent, None for pixels."""

    def corners(self) -> list[np.ndarray]:
        """Returns the corners (N, 2) of each polygon in the file's unit."""
        return [np.asarray(part, np.float64).reshape(-1, 2) for part in self.parts]

    def __call__(self, height: int, width: int) -> np.ndarray:
        """Draws the polygons, (height, width) bool."""
        scale = (width / self.side, height / self.side) if self.side else (1, 1)
        drawn = [fill_polygon(corners * scale, height, width) for corners in self.corners()]
        return np.any([np.zeros((height, width), bool), *drawn], axis=0)


def check_corners(outlines: Sequence[Outline], height: int, width: int) -> str:
    """Returns a remark about corners outside a picture; ValueError where they seem to have another unit."""
    side = outlines[0].side if outlines else None
    corners = np.concatenate([np.empty((0, 2)), *(part for outline in outlines for part in outline.corners())])
    from_centre = abs(corners / (side or (width, height)) - 0.5)  # in sides of the picture
    unit = {None: "pixels", 1: "shares of the sides", 100: "percent of the sides"}[side]
    if 2 * (far := int((from_centre > 1).any(axis=1).sum())) > len(corners):
        raise ValueError(f"{far} of {len(corners)} corners lie far outside the {width}x{height} picture, not in {unit}")
    if side != 1 and 0 < corners.max(initial=0) <= 1.05:
        raise ValueError(f"all corners lie between 0 and 1, as shares of the sides do, not {unit}")
    if side is None and min(height, width) > 200 and len(corners) and 50 < corners.max(0).min() <= corners.max() <= 100:
        return "no corner lies beyond 100,100, as if corners were percent of the sides"
    outside = (from_centre > 0.5 + 1 / np.array((width, height))).any(axis=1).sum()
    return f"{outside} of {len(corners)} corners lie outside the picture by more than a pixel" if outside else ""


class Shape(NamedTuple):
    """An outlined object."""

    name: str
    """Its class."""
    draw: Callable[[int, int], np.ndarray]
    """(height, width) -> (height, width) bool."""
    layer: int = 0
    """Objects of a higher layer hide those below."""


def paint(shapes: Sequence[Shape], claimed: Size, names: Sequence[str], overlaps: Overlaps, size: Size = None) -> Label:
    """Draws the objects one by one into a label map of (height, width), as claimed by the label file, else `size`.

    `overlaps` decides which of two objects in a layer gets the pixels that they share. ValueError for a size that
    no picture has, for an object that cannot be drawn, and for corners in another unit.
    """
    height, width = map(int, claimed or size or (0, 0))
    if min(height, width) < 1 or height * width > MAX_PICTURE_PIXELS:
        raise ValueError(f"a picture of {width}x{height}; it has 1 to {MAX_PICTURE_PIXELS} pixels")
    ids, shared, lost = np.full((height, width), UNLABELLED, np.uint8), 0, 0
    pairs: set[tuple[str, str]] = set()
    for _, members in groupby(sorted(shapes, key=lambda shape: shape.layer), key=lambda shape: shape.layer):
        layer, contested = np.full_like(ids, UNLABELLED), np.zeros(ids.shape, bool)
        areas = np.full(ids.shape, ids.size + 1, np.int32)  # area of the object that has the pixel
        for shape in members:
            class_id, mask = names.index(shape.name), shape.draw(height, width)
            area = int(mask.sum())
            lost += not area
            wins = mask & (areas >= area) if overlaps == "smaller" else mask
            clash = mask & (layer != UNLABELLED) & (layer != class_id)
            pairs.update((names[below], names[class_id]) for below in np.unique(layer[clash & wins]))
            pairs.update((names[class_id], names[above]) for above in np.unique(layer[clash & ~wins]))
            contested |= clash
            layer[wins], areas[wins] = class_id, area
        shared += int(contested.sum())
        covered = layer != UNLABELLED
        ids[covered] = np.where(contested & (overlaps == "void"), UNLABELLED, layer)[covered]
    outlines = [shape.draw for shape in shapes if isinstance(shape.draw, Outline)]
    remarks = list(filter(None, [check_corners(outlines, height, width)]))
    remarks += [f"left out, as no pixel's centre lies inside: {lost} of {len(shapes)} outlines"] if lost else []
    if shared:
        below, above = min(pairs)
        more = f" and {len(pairs) - 1} more pairs" if len(pairs) > 1 else ""
        share = f"objects of two classes overlap in {shared / ids.size:.2%} of the pixels ({above} over {below}{more})"
        remarks.append(f"{share}; {WINNERS[overlaps]}")
    return Label(ids, "; ".join(remarks))
