"""Plots of reports: figures without pyplot."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadyseg.core.system.files import write_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_figure(
    panels: int, width: float = 4.4, height: float = 3.6, rows: int = 1, sharex: bool = False, sharey: bool = False
) -> tuple["Figure", list["Axes"]]:
    """Panels side by side, row by row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * panels, height * rows), layout="constrained")
    return figure, list(figure.subplots(rows, panels, squeeze=False, sharex=sharex, sharey=sharey).flat)


def legend_below(figure: "Figure", axes: Sequence["Axes"]) -> None:
    """Draws one legend for all panels, each label once."""
    found: dict[str, Any] = {}
    for axis in axes:
        handles, labels = axis.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    figure.legend(list(found.values()), list(found), loc="outside lower center", ncols=min(4, len(found)), fontsize=8)


def write_figure(path: Path, figure: "Figure", dpi: int) -> None:
    """Writes a plot whole or not at all, in the format of its name's suffix."""
    from matplotlib.text import Text

    picture = io.BytesIO()
    for text in figure.findobj(Text):
        text.set_parse_math("$" not in text.get_text())  # a class may be named $\frac{$; matplotlib's own are parsed
    figure.savefig(picture, dpi=dpi, format=path.suffix.lstrip("."))
    write_atomic(path, picture.getvalue())
