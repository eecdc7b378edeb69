"""The legend below a picture: names of the classes that occur, or the scale of a map. The legend is drawn once and
kept."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from steadyseg.app.palette import drawable
from steadyseg.app.video.render import draw_uncertainty
from steadyseg.core.classes import ClassList
from steadyseg.core.frame import Maps

BACKGROUND, INK = (22, 24, 29), (226, 229, 235)
TEXT_SHARE, MIN_TEXT = 1 / 34, 10
"""Height of the text as a share of the shorter side of a picture, and its smallest height in pixels."""
MAX_ROWS = 3
MIN_SHARE = 0.001
"""A class is listed if it covers this share of a picture's pixels."""
STEP = 4
"""Every fourth row and column is counted: 0.04 ms instead of 1.5 ms for 960x540."""
HOLD = 50
"""A class stays listed for this many frames after it was last seen, so that entries do not blink."""
Color = tuple[int, int, int]


class Scale(NamedTuple):
    """The meaning of a map's colours."""

    title: str
    low: str
    """Meaning of black."""
    high: str
    """Meaning of the brightest colour."""
    steps: tuple[str, ...] = ()
    """Names of the colours if there are few; they replace the bar."""


class Legend:
    """Adds a panel below each picture in a row of equally large pictures: a scale, or for None a list of classes."""

    def __init__(self, classes: ClassList, panels: Sequence[Scale | None]) -> None:
        self._classes, self._panels = classes, tuple(panels)
        self._last_seen: dict[int, int] = {}
        self._frames = 0

    def size(self, width: int, height: int) -> tuple[int, int]:
        """(width, height) of a picture of this size with its legend; the height is even, as H.264 requires."""
        layout = layout_of(width // len(self._panels), height, drawable(self._classes.names), self._panels)
        return width, height + layout.height

    def add(self, picture: np.ndarray, maps: Maps) -> np.ndarray:
        """(H, W, 3) uint8 RGB -> the picture above its legend. 0.2 ms for 960x540 while the same classes occur."""
        height, width = picture.shape[:2]
        shown = self._occurring(maps.label) if None in self._panels else ()
        return np.concatenate((picture, draw_legend(width, height, self._classes, self._panels, shown)))

    def _occurring(self, label: np.ndarray) -> tuple[int, ...]:
        """Ids, ascending, of the classes that cover `MIN_SHARE` of this frame or of one of the last `HOLD` frames."""
        self._frames += 1
        counts = np.bincount(label[::STEP, ::STEP].ravel(), minlength=len(self._classes))[: len(self._classes)]
        self._last_seen.update((int(one), self._frames) for one in np.flatnonzero(counts >= MIN_SHARE * counts.sum()))
        return tuple(sorted(one for one, last in self._last_seen.items() if last > self._frames - HOLD))


class Layout(NamedTuple):
    """Sizes in pixels of the panels below pictures of one size."""

    text: int
    row: int
    rows: int
    height: int


@lru_cache(maxsize=16)
def layout_of(width: int, height: int, names: tuple[str, ...], panels: tuple[Scale | None, ...]) -> Layout:
    """The layout of panels below pictures of width x height, with room for all classes or `MAX_ROWS` rows."""
    text = max(MIN_TEXT, round(min(width, height) * TEXT_SHARE))
    needed = 1 + flow(names, width, text)[-1][1] if None in panels else 1
    rows = max(min(needed, MAX_ROWS), 2 if any(panels) else 1)
    row = round(1.5 * text)
    used = rows * row + text // 2
    return Layout(text, row, rows, used + (height + used) % 2)


@lru_cache(maxsize=16)
def draw_legend(
    width: int, height: int, classes: ClassList, panels: tuple[Scale | None, ...], shown: tuple[int, ...]
) -> np.ndarray:
    """(h, width, 3) uint8 RGB: the panels below a row of pictures of width x height in all; `shown`: class ids."""
    from PIL import Image, ImageDraw

    each = width // len(panels)
    names = drawable(classes.names)
    layout = layout_of(each, height, names, panels)
    legend = Image.new("RGB", (width, layout.height), BACKGROUND)
    for number, scale in enumerate(panels):
        panel = Image.new("RGB", (each, layout.height), BACKGROUND)
        draw = ImageDraw.Draw(panel)
        if scale is None:
            draw_entries(draw, [(names[one], classes.colors[one]) for one in shown], each, layout, 0)
        else:
            draw.text((layout.text / 2, layout.row / 2), scale.title, INK, font(layout.text), anchor="lm")
            if scale.steps:
                shades = draw_uncertainty(np.linspace(0, 255, len(scale.steps)).astype(np.uint8)[None])[0]
                steps = [(name, tuple(shade)) for name, shade in zip(scale.steps, shades.tolist(), strict=True)]
                draw_entries(draw, steps, each, layout, 1)
            else:
                draw_bar(panel, scale, layout)
        legend.paste(panel, (number * each, 0))
    return np.asarray(legend)


def draw_entries(draw: Any, entries: list[tuple[str, Any]], width: int, layout: Layout, first: int) -> None:
    """Draws a square and a name for each entry from row `first` on, then the number of entries that do not fit."""
    size, face = layout.text, font(layout.text)
    fit = [place for place in flow(tuple(name for name, _ in entries), width, size) if place[1] + first < layout.rows]
    while fit and len(fit) < len(entries) and fit[-1][2] + 3 * size > width:  # room for the number
        fit.pop()
    for (name, color), (x, row, _) in zip(entries, fit, strict=False):
        middle = (row + first + 0.5) * layout.row
        draw.rectangle((x, middle - size // 2, x + size, middle - size // 2 + size), color, outline=INK)
        draw.text((x + 1.4 * size, middle), name, INK, face, anchor="lm")
    if fit and len(fit) < len(entries):
        place = (fit[-1][2], (fit[-1][1] + first + 0.5) * layout.row)
        draw.text(place, f"+ {len(entries) - len(fit)}", INK, face, anchor="lm")


def draw_bar(panel: Any, scale: Scale, layout: Layout) -> None:
    """Draws the colours from black to the brightest in the second row, between the words for both ends."""
    from PIL import Image, ImageDraw

    draw, size, face = ImageDraw.Draw(panel), layout.text, font(layout.text)
    middle, width = 1.5 * layout.row, panel.size[0]
    left, right = (size // 2 + round(face.getlength(scale.low)), width - size // 2 - round(face.getlength(scale.high)))
    draw.text((size / 2, middle), scale.low, INK, face, anchor="lm")
    draw.text((right, middle), scale.high, INK, face, anchor="lm")
    length = right - left - size
    if length > size:  # otherwise the words fill a narrow picture
        shades = np.repeat(np.linspace(0, 255, length).astype(np.uint8)[None], size, 0)
        panel.paste(Image.fromarray(draw_uncertainty(shades)), (left + size // 2, round(middle - size / 2)))


@lru_cache(maxsize=64)
def flow(names: tuple[str, ...], width: int, size: int) -> list[tuple[int, int, int]]:
    """(x, row, end) in pixels of entries that follow each other in rows of this width, in text of this size."""
    x, row, found = size // 2, 0, []
    for name in names:
        length = round(font(size).getlength(name) + 2.4 * size)
        if x + length > width and x > size // 2:
            x, row = size // 2, row + 1
        found.append((x, row, x + length))
        x += length
    return found


@lru_cache(maxsize=16)
def font(size: int) -> Any:
    """Pillow's own font, which needs no file of the system."""
    from PIL import ImageFont

    return ImageFont.load_default(size)
