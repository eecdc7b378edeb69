"""The progress bar of all commands, on stderr: the parts done, their rate or state, and the time left."""

from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import Protocol, TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from app.console import Console

T = TypeVar("T")
SPEED_S = 600
"""Seconds of the past from which the time left is estimated: an epoch's evaluation must not shorten it."""


class Show(Protocol):
    """Redraws the bar with the number of parts done."""

    def __call__(self, done: int, total: int | None = None, status: str = "") -> None: ...


@contextmanager
def progress_bar(title: str, total: int | None = None, console: Console | None = None) -> Iterator[Show]:
    """Shows a bar while the context lasts. A number of parts that is not known yet is given with a later call."""
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
    """Yields the items with a bar; `total` is their number where they have no length."""
    with progress_bar(title, len(items) if isinstance(items, Sized) else total) as show:
        for done, item in enumerate(items, start=1):
            yield item
            show(done)
