"""Plots of reports: figures without pyplot, line styles that tell networks apart in print, legends below."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES = ("-", "--", ":", "-.")
MARKS = ("o", "s", "^", "D", "v", "P")


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
