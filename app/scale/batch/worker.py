"""A worker of a batch: it keeps its segmenters and processes one video after the other."""

import faulthandler
import os
import platform
import time
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TYPE_CHECKING

from steadyseg.app.scale.batch.task import BatchOutputs, Row, WorkerVersion
from steadyseg.app.scale.engines.machine import peak_memory_bytes, pin_core, use_one_thread
from steadyseg.core.errors import InputError
from steadyseg.core.system.files import DISK_ERRORS

if TYPE_CHECKING:
    from steadyseg.app.scale.batch.clips import Clip
    from steadyseg.app.scale.batch.results import Segmenters


STALL_S = 300.0
"""A video times out after this time without a new frame, and its worker is replaced; a frame takes far less."""


class VideoWorker:
    """A worker in a process of its own. It processes videos in a thread, so that a video can time out."""

    def __init__(self, wanted: BatchOutputs, stall_s: float = STALL_S) -> None:
        pin_core()  # before torch is imported
        self._wanted, self._stall_s = wanted, stall_s
        self._pool, self._null = ThreadPoolExecutor(1), os.open(os.devnull, os.O_WRONLY)
        self._progress_s = 0.0
        self._segmenters: Segmenters | None = None

    def prepare(self, clip: "Clip") -> WorkerVersion:
        """Opens the segmenter of a first video; returns the worker's versions. InputError for unfit options."""
        if not self._wanted.folder.is_dir():
            raise InputError(
                f"{platform.node()} has no folder {self._wanted.folder}; results go where all machines see them"
            )
        self._open().take(clip.job)
        use_one_thread()
        return about(clip.job.options.model)

    def run(self, clip: "Clip") -> Row:
        """Makes the results of a video; every failure is reported in the returned row.

        If nothing can be returned because C code holds the GIL, the process ends itself.
        """
        self._note_progress()
        self._end_unless_called_again()
        row = self._pool.submit(self._make, clip)
        while not wait([row], timeout=min(1.0, self._stall_s)).done:
            self._end_unless_called_again()
            if time.monotonic() - self._progress_s > self._stall_s:
                reason = f"no new frame for {self._stall_s:g} s"
                return Row(clip.name, clip.job.source, reason=reason, stalled=True)
        faulthandler.cancel_dump_traceback_later()
        return row.result()

    def _end_unless_called_again(self) -> None:
        faulthandler.dump_traceback_later(2 * self._stall_s, file=self._null, exit=True)

    def _note_progress(self) -> None:
        self._progress_s = time.monotonic()

    def _make(self, clip: "Clip") -> Row:
        segmenters = self._open()
        from steadyseg.app.scale.batch.results import make_results

        row, began_s = Row(clip.name, clip.job.source), time.perf_counter()
        try:
            report = make_results(clip, self._wanted, segmenters.take, self._note_progress)
            row = replace(row, frames=report["frames"], verdict=report.get("verdict", ""))
        except InputError as error:
            row = replace(row, reason=str(error))
        except OSError as error:
            full = error.errno if error.errno in DISK_ERRORS else None
            row = replace(row, reason=_in_line(error), own_fault=False, full_disk=full)
        except Exception as error:  # for example from a runtime's C++; the worker can go on
            row = replace(row, reason=_in_line(error), own_fault=False)
        return replace(row, seconds=time.perf_counter() - began_s, memory_bytes=peak_memory_bytes())

    def _open(self) -> "Segmenters":
        if self._segmenters is None:
            from steadyseg.app.scale.batch.results import Segmenters

            self._segmenters = Segmenters()
        return self._segmenters


def about(model: str) -> WorkerVersion:
    """The versions of this process."""
    from importlib.metadata import version
    from importlib.util import find_spec

    from steadyseg.app.scale.batch.results import digest

    python = ".".join(platform.python_version_tuple()[:2])
    libraries = ", ".join(f"{name} {version(name)}" for name in ("openvino", "torch") if find_spec(name))
    return WorkerVersion(version("steadyseg"), python, libraries, digest(model))


def _in_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
