"""The legend as HTML: classes with switches and live shares, and the scale of uncertainty."""

import html

import numpy as np

from app.video.render import draw_uncertainty
from core.classes import ClassList


def escape(text: str) -> str:
    """Text from outside (file names, class names) as harmless HTML."""
    return html.escape(text)


def legend(classes: ClassList) -> str:
    """A switch for each class with its colour, name and place for its share; app/page/web/instruments.js reads and
    fills it."""
    entries = "".join(_entry(index, classes) for index in range(len(classes)))
    return f"<div class='legend' role='group' aria-label='Classes that are coloured'>{entries}</div>"


def _entry(index: int, classes: ClassList) -> str:
    name, color = escape(classes.names[index]), f"rgb{classes.colors[index]}"
    return (
        f"<label class='entry' data-class='{index}' data-name='{name}' data-color='{color}'>"
        f"<input type='checkbox' value='{index}' checked><i style='background:{color}'></i>{name}"
        "<span class='share'></span></label>"
    )


def shade_stops() -> str:
    """The uncertainty's colours from sure to unsure, for a CSS gradient."""
    shades = draw_uncertainty(np.linspace(0, 255, 9).astype(np.uint8)[None])[0]  # (9, 3)
    return ", ".join(f"rgb({red}, {green}, {blue})" for red, green, blue in shades)
