"""The terminal as all commands print to it: text as it is, tables of numbers, and the progress bar on stderr."""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import rich.console
from rich import box
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

T = TypeVar("T")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
UNFINISHED = [""]
"""Text about how far `track` came; the message of an interrupted command contains it."""
SPEED_S = 600
"""The estimate of the time left uses this many past seconds: an epoch's evaluation must not shorten it."""


class Console(rich.console.Console):
    """A console that shows text as it is: a class, a model or a file may be called `[/b]` or `:smile:`."""

    def __init__(self, *, stderr: bool = False, quiet: bool = False) -> None:
        super().__init__(stderr=stderr, quiet=quiet, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """Text of a file cannot steer the terminal: a control character becomes a blank."""
        return super().render_str(CONTROL.sub(" ", text), **options)


METRIC_WORDS = {
    "nll": "negative log-likelihood (nll)",
    "ece": "expected calibration error (ece)",
    "aurc": "area under risk-coverage (aurc)",
    "cec": "cross-entropy of neighbouring frames (cec)",
}


def figure_table(*columns: str, title: str | None = None) -> Table:
    """A table with names in the first column and numbers, aligned to the right, in the other columns. Short names of
    metrics get their words."""
    table = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        table.add_column(METRIC_WORDS.get(column, column), justify="right" if place else "left")
    return table


def print_table(title: str, columns: Sequence[str], rows: Iterable[tuple[str, *tuple[float | None, ...]]]) -> None:
    """Prints the title, and a table with a name and numbers in each row; a dash for a value that was not measured."""
    table = figure_table(*columns)
    for name, *figures in rows:
        table.add_row(METRIC_WORDS.get(name, name), *("-" if value is None else f"{value:.4f}" for value in figures))
    Console().print(title, soft_wrap=True)
    Console().print(table)


class Show(Protocol):
    """Redraws the bar with the number of parts done."""

    def __call__(self, done: int, total: int | None = None, status: str = "") -> None: ...


@contextmanager
def progress_bar(title: str, total: int | None = None, console: Console | None = None) -> Iterator[Show]:
    """Shows the parts done, their rate or state, and the time left while the context lasts. If the number of parts is
    unknown at first, a later call gives it."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[status]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console or Console(stderr=True), speed_estimate_period=SPEED_S) as progress:
        task = progress.add_task(title, total=total, status="")

        def show(done: int, total: int | None = total, status: str = "") -> None:
            progress.update(task, completed=done, total=total, status=status)

        yield show


def track(items: Iterable[T], title: str, total: int | None = None) -> Iterator[T]:
    """Yields the items with a bar; `total` is their number if they have no length. A command keeps no result of
    unfinished items."""
    total, outer = len(items) if isinstance(items, Sized) else total, UNFINISHED[0]
    try:
        with progress_bar(title, total) as show:
            for done, item in enumerate(items, start=1):
                UNFINISHED[0] = f" at {done} of {total or 'unknown'} ({title}); nothing of it is kept, run it again"
                yield item
                show(done)
    finally:  # also if the caller leaves its loop early
        # After an interruption the message about unfinished work stays. The exception is a KeyboardInterrupt, or was
        # raised while one was handled: the consumer then closed its source.
        error = sys.exception()
        if KeyboardInterrupt not in (type(error), type(getattr(error, "__context__", None))):
            UNFINISHED[0] = outer


def make_table(title: str, first: str, *columns: str) -> Table:
    """A table that fits 80 characters and cuts off no name or number."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column in (first, *columns):
        table.add_column(column, no_wrap=column != "modes")
    return table
