"""What the colours mean, as HTML: the classes, and the scale of uncertainty."""

import html

import numpy as np

from app.render import uncertainty
from core.classes import ClassList


def escaped(text: str) -> str:
    """Text from outside (file names, class names) as harmless HTML."""
    return html.escape(text)


def legend(classes: ClassList) -> str:
    """A box of each class's colour with its name, and the uncertainty's colours from sure to unsure."""
    return f"<div class='legend'>{''.join(map(_class_box, classes.names, classes.colors))}{_scale()}</div>"


def _class_box(name: str, color: tuple[int, int, int]) -> str:
    return f"<span class='entry'><i style='background:rgb{tuple(color)}'></i>{escaped(name)}</span>"


def _scale() -> str:
    shades = uncertainty(np.linspace(0, 255, 9).astype(np.uint8)[None])[0]  # (9, 3)
    stops = ", ".join(f"rgb({red}, {green}, {blue})" for red, green, blue in shades)
    return f"<span class='entry scale'>sure <i style='background:linear-gradient(to right, {stops})'></i> unsure</span>"
