"""A contact sheet of a data folder: pictures, their labels over them, and a legend."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from core.classes import ClassList
from seg.data.camvid import open_split

SHEET_FILE = "contact-sheet.jpg"
PICTURES = 12
WIDTH, MARGIN, LINE = 320, 8, 22
COLUMNS = 2
"""Pairs of picture and labelled picture in a row."""
OPACITY = 0.6


def write_contact_sheet(root: Path, classes: ClassList) -> None:
    """Writes root/contact-sheet.jpg with pictures of train, evenly spaced; void is black."""
    split = open_split(root, "train", classes).spaced(PICTURES)
    pairs = [_pair(*split[number], classes) for number in range(len(split))]
    names = [example.name for example in split.examples]
    cell_width, cell_height = 2 * WIDTH + 2 * MARGIN, max(pair.height for pair in pairs) + LINE
    rows = -(-len(pairs) // COLUMNS)
    entries = [*zip(classes.names, classes.colors, strict=True), ("void", (0, 0, 0))]
    per_line = COLUMNS * cell_width // 160
    legend_height = -(-len(entries) // per_line) * LINE + MARGIN
    sheet = Image.new("RGB", (COLUMNS * cell_width, rows * cell_height + legend_height), "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(14)
    for number, (name, pair) in enumerate(zip(names, pairs, strict=True)):
        left, top = number % COLUMNS * cell_width + MARGIN, number // COLUMNS * cell_height
        draw.text((left, top + 2), name[:80], "black", font)
        sheet.paste(pair, (left, top + LINE))
    for number, (name, color) in enumerate(entries):
        left, top = number % per_line * 160 + MARGIN, rows * cell_height + number // per_line * LINE + MARGIN
        draw.rectangle((left, top, left + 16, top + 14), color, "black")
        draw.text((left + 22, top), name[:16], "black", font)
    sheet.save(root / SHEET_FILE, quality=85)


def _pair(image: np.ndarray, label: np.ndarray, classes: ClassList) -> Image.Image:
    """Draws a picture and beside it the same picture with its label's colours, each WIDTH wide."""
    colored = (image * (1 - OPACITY) + classes.palette()[label] * OPACITY).astype(np.uint8)
    height = max(1, round(image.shape[0] * WIDTH / image.shape[1]))
    both = Image.new("RGB", (2 * WIDTH, height))
    for place, pixels in enumerate((image, colored)):
        both.paste(Image.fromarray(pixels).resize((WIDTH, height), Image.Resampling.BILINEAR), (place * WIDTH, 0))
    return both
