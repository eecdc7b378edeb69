"""The temporal figure of `steadyseg video --grid`: the class probabilities of one pixel over time, by method."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from steadyseg.app.report_file import write_figure
from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Maps
from steadyseg.core.system.files import require_place

SUFFIXES = (".png", ".svg", ".pdf")
GRID = (12, 16)
"""Rows and columns of the kept pixels, spread over the picture: 8 kB a frame and method with 11 classes."""
MAX_FRAMES = 4000
"""With as many frames kept, every second is dropped: 140 MB for four methods, however long the source is."""
SHOWN = 4
"""Number of classes in the figure, which shows the pixel's likeliest classes."""


class Traces:
    """Probabilities of a grid of pixels at every frame, by method."""

    def __init__(self, classes: ClassList, names: Sequence[str]) -> None:
        self.classes, self.names = classes, tuple(names)
        self.times: list[float] = []
        self._frames, self._every = 0, 1
        self.probs: list[list[np.ndarray]] = [[] for _ in names]

    def add(self, time_s: float, found: Sequence[Maps]) -> None:
        """Adds a frame: the maps of every method, with probabilities."""
        self._frames += 1
        if (self._frames - 1) % self._every:
            return
        if len(self.times) == MAX_FRAMES:
            self.times, self.probs, self._every = self.times[::2], [one[::2] for one in self.probs], 2 * self._every
        self.times.append(time_s)
        for kept, maps in zip(self.probs, found, strict=True):
            assert maps.probs is not None
            _, height, width = maps.probs.shape
            rows, columns = (
                ((2 * np.arange(count) + 1) * size // (2 * count))
                for count, size in zip(GRID, (height, width), strict=True)
            )
            kept.append(maps.probs[:, rows[:, None], columns].copy())

    def liveliest(self) -> tuple[int, int]:
        """The place in the grid whose class changes most often in the first method."""
        labels = np.stack(self.probs[0]).argmax(1)
        changes = (labels[1:] != labels[:-1]).sum(0)
        row, column = np.unravel_index(int(changes.argmax()), GRID)
        return int(row), int(column)


def check_plot(path: Path | None, *, overwrite: bool) -> None:
    """Raises InputError, before any work, if the figure cannot be written."""
    if path is None:
        return
    require_place(path, "a plot", SUFFIXES, overwrite=overwrite)
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError("--plot needs matplotlib: pip install 'steadyseg[calibrate]'")


def write_traces(path: Path, traces: Traces) -> None:
    """Draws a panel for each method, with a curve for each of the pixel's likeliest classes."""
    from matplotlib.figure import Figure

    row, column = traces.liveliest()
    curves = [np.stack(kept)[:, :, row, column] for kept in traces.probs]
    shown = np.argsort(np.mean([curve.mean(0) for curve in curves], 0))[::-1][:SHOWN]
    figure = Figure(figsize=(3.4 * len(curves), 2.8), layout="constrained")
    for axis, name, curve in zip(figure.subplots(1, len(curves), squeeze=False)[0], traces.names, curves, strict=True):
        for one in shown:
            colour = tuple(part / 255 for part in traces.classes.colors[one])
            axis.plot(traces.times, curve[:, one], color=colour, label=traces.classes.names[one])
        axis.set(title=name, xlabel="seconds", ylim=(0, 1))
    place = f"{(column + 0.5) / GRID[1]:.0%} from the left, {(row + 0.5) / GRID[0]:.0%} from the top"
    figure.axes[0].set_ylabel("probability")
    figure.axes[-1].legend(fontsize=7)
    figure.suptitle(f"the pixel {place}", fontsize=9)
    write_figure(path, figure, dpi=130)
