"""The work of a batch on one video, in a process that keeps its segmenter. No torch at the top: a process chooses its
core before torch is imported."""

import contextlib
import faulthandler
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadyseg.app.scale.batch.clips import Clip
from steadyseg.app.scale.batch.task import BatchTask, Row
from steadyseg.app.scale.engines.machine import pin_core, use_one_thread
from steadyseg.core.errors import InputError
from steadyseg.core.system.files import DISK_ERRORS, describe_disk_error

if TYPE_CHECKING:
    from steadyseg.app.scale.batch.results import Segmenters


def run(task: BatchTask, clip: Clip) -> Row:
    """Makes the results of a video; every failure is reported in the returned row."""
    row, began_s, opened = Row(clip.name, clip.source), time.perf_counter(), False
    try:
        segmenter = _segmenters(task).take(clip)  # without a time limit: a first conversion takes minutes
        opened = True
        from steadyseg.app.scale.batch.results import make_results

        use_one_thread()
        with _end_if_stalled(task.mark(clip), task.stall_s) as progress:
            report = make_results(clip, task, segmenter, progress)
        row = replace(row, frames=report["frames"], verdict=report.get("verdict", ""), caveat=report.get("caveat", ""))
    except InputError as error:
        row = replace(row, reason=str(error), fault="video" if opened else "options")
    except Exception as error:  # for example from a runtime's C++; the worker can go on
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            row = replace(row, reason=describe_disk_error(error), fault="disk")
        else:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            row = replace(row, reason=reason[:300], fault="worker")
    return replace(row, seconds=time.perf_counter() - began_s)


@cache
def _segmenters(task: BatchTask) -> "Segmenters":
    """The segmenters of this process. Raises InputError if it has no folder of results or differs from the driver."""
    pin_core()
    if not task.folder.is_dir():
        raise InputError(f"{platform.node()} has no folder {task.folder}; results go where all machines see them")
    for (name, ours), (_, theirs) in zip(task.versions, versions_of(task.options.model), strict=True):
        if theirs != ours:
            raise InputError(
                f"the workers have {name} {theirs} and this machine {ours}: results would depend on where a video "
                "goes; install the same everywhere"
            )
    from steadyseg.app.scale.batch.results import Segmenters

    return Segmenters(task)


@contextlib.contextmanager
def _end_if_stalled(mark: Path, limit_s: float) -> Iterator[Callable[[], Any]]:
    """Ends this process, even where C code holds Python's lock, unless the given function is called again in time."""
    with mark.open("wb") as file:

        def progress() -> None:
            faulthandler.dump_traceback_later(limit_s, file=file, exit=True)

        progress()
        try:
            yield progress
        finally:
            faulthandler.cancel_dump_traceback_later()
            mark.unlink(missing_ok=True)


def versions_of(model: str) -> tuple[tuple[str, str], ...]:
    """Names and versions of SteadySeg, Python, libraries and weights in this process."""
    from importlib.metadata import version
    from importlib.util import find_spec

    from steadyseg.app.scale.batch.results import digest

    python = ".".join(platform.python_version_tuple()[:2])
    libraries = ", ".join(f"{name} {version(name)}" for name in ("openvino", "torch") if find_spec(name))
    found = {"steadyseg": version("steadyseg"), "python": python, "libraries": libraries, "weights": digest(model)}
    return tuple(found.items())
