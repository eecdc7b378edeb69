"""Contact sheets: many small pictures with captions and a legend of the classes, in one JPEG."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from steadyseg.app.palette import display_classes, draw_classes, drawable
from steadyseg.core.classes import ClassList

SHEET_FILE = "contact-sheet.jpg"
WIDTH, MARGIN, LINE, ENTRY = 320, 8, 22, 160
COLUMNS = 2
"""Strips in a row."""
SHOWN = 40
"""Cells of a sheet with one strip for each finding; a JPEG has at most 65,500 rows."""


class Cell(NamedTuple):
    """A caption and the strip of pictures below it."""

    caption: str
    strip: Image.Image


def colored(image: np.ndarray, label: np.ndarray, classes: ClassList) -> np.ndarray:
    """Lays the class colours of (H, W) ids over the picture (H, W, 3), as in videos; void is black."""
    return draw_classes(image, label, display_classes(classes).palette())


def strip(*pictures: np.ndarray) -> Image.Image:
    """Puts pictures (H, W, 3) uint8 of one size side by side, each `WIDTH` wide."""
    height = max(1, round(pictures[0].shape[0] * WIDTH / pictures[0].shape[1]))
    both = Image.new("RGB", (len(pictures) * WIDTH, height))
    for place, pixels in enumerate(pictures):
        both.paste(Image.fromarray(pixels).resize((WIDTH, height), Image.Resampling.BILINEAR), (place * WIDTH, 0))
    return both


def write_sheet(path: Path, cells: Sequence[Cell], classes: ClassList) -> None:
    """Writes the cells, `COLUMNS` in a row, and the legend."""
    width = max(cell.strip.width for cell in cells) + 2 * MARGIN
    height = max(cell.strip.height for cell in cells) + LINE
    rows = -(-len(cells) // COLUMNS)
    named = zip(drawable(classes.names), display_classes(classes).colors, strict=True)
    entries = [*named, ("void", (0, 0, 0))]
    per_line = COLUMNS * width // ENTRY
    legend_height = -(-len(entries) // per_line) * LINE + MARGIN
    sheet = Image.new("RGB", (COLUMNS * width, rows * height + legend_height), "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(14)
    for number, cell in enumerate(cells):
        left, top = number % COLUMNS * width + MARGIN, number // COLUMNS * height
        draw.text((left, top + 2), cell.caption[: cell.strip.width // 8], "black", font)
        sheet.paste(cell.strip, (left, top + LINE))
    for number, (name, color) in enumerate(entries):
        left, top = number % per_line * ENTRY + MARGIN, rows * height + number // per_line * LINE + MARGIN
        draw.rectangle((left, top, left + 16, top + 14), color, "black")
        draw.text((left + 22, top), name[:16], "black", font)
    sheet.save(path, quality=85)
