"""Display of classes: names that a font can draw, colours, and their overlay. A class has its own colour, unless a
half-transparent overlay could show it as another class."""

import unicodedata
from dataclasses import replace
from functools import lru_cache

import numpy as np

from steadyseg.app.opencv import opencv
from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError

APART = 40.0
"""Smallest distance of two colours in CIELAB; an overlay of 50 % halves it. In CamVid's own colours Road
is 24 from Fence, and 38 from Car: both pairs are hard to tell apart over dark asphalt."""
GRID = np.arange(0, 256, 51)
"""Levels of red, green and blue that a moved colour may have."""
STRENGTH = ((0.4, 0.4), (0.9, 1.0))
"""(confidence, share of the chosen opacity), twice. A pixel of confidence 0.4 or less has 40 % of the opacity, a pixel
of 0.9 or more all of it."""
TINTED = 2.0
"""`APART` over the smallest distance of a colour from another colour's tint."""
LIGHTNESS = (40.0, 92.0)
"""Range of a moved colour's lightness: black is void, and white marks changed labels."""


@lru_cache(maxsize=16)
def display_classes(classes: ClassList) -> ClassList:
    """Returns the classes in colours that differ. A class keeps its own colour unless an earlier class's colour is too
    close. Then it gets the nearest colour that is `APART` from all others, or else the colour farthest from the
    others. Where the overlay fades, a colour over white is a tint, which no moved colour may resemble either."""
    given = np.array(classes.colors)
    own, (levels, candidates) = lab(given), _candidates()
    tints = lab(faded(levels))
    shown: dict[int, np.ndarray] = {}
    for number, colour in enumerate(own):
        if nearest(colour[None], shown).item() >= APART:
            shown[number] = colour
    colors = list(classes.colors)
    for number in sorted(set(range(len(classes))) - shown.keys()):
        paler = {one: lab(faded(np.array([colors[one]])))[0] for one in shown}
        gaps = np.minimum(nearest(candidates, shown), TINTED * nearest(candidates, paler))
        gaps = np.minimum(gaps, TINTED * nearest(tints, shown))
        far_enough = np.flatnonzero(gaps >= APART)
        to_own = np.linalg.norm(candidates[far_enough] - own[number], axis=1)
        place = far_enough[to_own.argmin()] if len(far_enough) else gaps.argmax()
        shown[number] = candidates[place]
        red, green, blue = (int(level) for level in levels[place])
        colors[number] = (red, green, blue)
    return replace(classes, colors=tuple(colors))


def faded(colours: np.ndarray) -> np.ndarray:
    """RGB 0..255, (N, 3): the colours over white where the overlay shows little of them."""
    return 255 - STRENGTH[0][1] * (255 - colours)


def lab(colours: np.ndarray) -> np.ndarray:
    """RGB 0..255, (N, 3) -> CIELAB, (N, 3) float32."""
    cv2 = opencv()
    return np.asarray(cv2.cvtColor(colours.astype(np.float32)[None] / 255, cv2.COLOR_RGB2LAB)[0])


def nearest(colours: np.ndarray, others: dict[int, np.ndarray]) -> np.ndarray:
    """(N,) distance of each colour from the nearest other colour; infinite if there are no others."""
    if not others:
        return np.full(len(colours), np.inf)
    return np.linalg.norm(colours[:, None] - np.stack(list(others.values()))[None], axis=2).min(1)


@lru_cache(maxsize=1)
def _candidates() -> tuple[np.ndarray, np.ndarray]:
    """(RGB, CIELAB) of the colours of the grid that are neither dark nor white."""
    levels = np.stack(np.meshgrid(GRID, GRID, GRID), -1).reshape(-1, 3)
    values = lab(levels)
    usable = (values[:, 0] >= LIGHTNESS[0]) & (values[:, 0] <= LIGHTNESS[1])
    return levels[usable], values[usable]


@lru_cache(maxsize=16)
def drawable(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names in ASCII, since the font draws other letters as boxes. A name with other letters is drawn behind its
    id: it loses its accents, and letters become their codes."""

    def plain(name: str) -> str:
        letters = [letter for letter in unicodedata.normalize("NFKD", name) if not unicodedata.combining(letter)]
        return "".join(letters).encode("ascii", "backslashreplace").decode()

    return tuple(name if name.isascii() else f"{number}: {plain(name)}" for number, name in enumerate(names))


def draw_overlay(
    image: np.ndarray,
    label: np.ndarray,
    palette: np.ndarray,
    opacity: float = 0.5,
    confidence: np.ndarray | None = None,
) -> np.ndarray:
    """Class colours over the picture: opacity 0 shows only the picture, opacity 1 only the colours.

    The image is (H, W, 3) uint8 RGB, the label (H, W) uint8. The palette is (N, 3) uint8 RGB, at most 256 colours.
    Labels from N on are black. `confidence` (H, W) uint8, 255 = 1: the colours fade where it is low (`STRENGTH`).
    InputError for another palette. 1.4 ms for 960x540, and 2.5 ms with a confidence; `palette[label]` instead of
    OpenCV's table look-up would take 5 ms.
    """
    cv2, colours = opencv(), colour_labels(label, palette)
    if confidence is None:
        return cv2.addWeighted(image, 1 - opacity, colours, opacity, 0)
    share = cv2.cvtColor(cv2.LUT(confidence, strengths(opacity)), cv2.COLOR_GRAY2RGB)
    return cv2.add(cv2.multiply(colours, share, scale=1 / 255), cv2.multiply(image, 255 - share, scale=1 / 255))


@lru_cache(maxsize=32)
def strengths(opacity: float) -> np.ndarray:
    """(256,) uint8: the opacity, 255 = 1, of a pixel of each level of confidence, by `STRENGTH`."""
    (low, least), (high, most) = STRENGTH
    return np.round(255 * opacity * np.interp(np.arange(256) / 255, (low, high), (least, most))).astype(np.uint8)


def draw_contours(picture: np.ndarray, label: np.ndarray, palette: np.ndarray) -> None:
    """Draws into the picture, on both sides of each border between classes, a line in the full colour of that side."""
    cv2 = opencv()
    side = 3 + 2 * (label.shape[0] // 720)
    edges = cv2.morphologyEx(label, cv2.MORPH_GRADIENT, np.ones((side, side), np.uint8))
    cv2.copyTo(colour_labels(label, palette), edges, picture)


def colour_labels(label: np.ndarray, palette: np.ndarray) -> np.ndarray:
    """Gives each class id its colour: (H, W) uint8 ids, (N, 3) uint8 palette -> (H, W, 3) uint8 RGB. 0.4 ms a frame."""
    if palette.dtype != np.uint8 or palette.ndim != 2 or palette.shape[1] != 3 or len(palette) > 256:
        raise InputError(f"a palette is (N, 3) uint8 RGB, at most 256 colours, got {palette.shape} {palette.dtype}")
    table = palette if len(palette) == 256 else np.pad(palette, ((0, 256 - len(palette)), (0, 0)))
    return opencv().applyColorMap(label, table[:, None, :])


def draw_classes(
    image: np.ndarray,
    label: np.ndarray,
    palette: np.ndarray,
    opacity: float = 0.5,
    confidence: np.ndarray | None = None,
) -> np.ndarray:
    """The overlay with its outlines, as videos, contact sheets and the page show it; opacity 0 has no outlines."""
    overlay = draw_overlay(image, label, palette, opacity, confidence)
    if opacity:
        draw_contours(overlay, label, palette)
    return overlay
