"""Alarms of cameras as JSON lines: a line when a condition begins, and a line when it ends. They contain no secret."""

import json
import os
import select
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from steadyseg.app.scale.cameras.camera_file import Camera
from steadyseg.app.scale.cameras.state import CameraFigures
from steadyseg.core.errors import InputError

MAX_PENDING = 2**20
"""Bytes of lines that wait for room on the disk or for a reader: about 5,000 alarms."""
STDOUT = 1


class AlarmWriter:
    """A file or stream of lines that never blocks the service: lines that cannot be written yet wait in memory."""

    def __init__(self, path: Path | None, tell: Callable[[str], object], stream: int = STDOUT) -> None:
        """`tell` gets one line when writing begins to fail. `stream`: the descriptor to write to if `path` is None.
        Raises InputError if the file cannot be opened."""
        self._name = f"--alarms {path}" if path else "the alarms on stdout"
        self._tell, self._trouble, self._pending, self._lost = tell, "", b"", 0
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) if path else os.dup(stream)
        except OSError as error:
            raise InputError(f"--alarms {path}: cannot be written ({error.strerror}); choose another file") from error
        if path and path.is_file() and not _ends_a_line(path):  # a killed process left half a line
            self._pending = b"\n"

    def write(self, line: str) -> None:
        """Writes the line now or later; lines beyond `MAX_PENDING` are counted as lost."""
        data = line.encode()
        self._lost += len(self._pending) + len(data) > MAX_PENDING
        self._pending += data if len(self._pending) + len(data) <= MAX_PENDING else b""
        self.flush()

    def flush(self) -> None:
        """Writes as many waiting lines as possible without blocking."""
        trouble = ""
        try:
            while self._pending and not trouble:
                if select.select([], [self._file], [], 0)[1]:
                    written = os.write(self._file, self._pending[: select.PIPE_BUF])  # more could block a pipe
                    self._pending = self._pending[written:]
                else:
                    trouble = "nobody reads them"
        except OSError as error:
            trouble = error.strerror or type(error).__name__
        if trouble and not self._trouble:
            self._tell(f"{self._name}: cannot be written now ({trouble}); the lines wait in memory")
        self._trouble = trouble

    def close(self) -> None:
        """Writes the waiting lines, or reports how many are lost."""
        self.flush()
        os.close(self._file)
        left = self._pending.count(b"\n") + self._lost
        if left:
            self._tell(f"{self._name}: {left} lines were never written ({self._trouble})")


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        return file.seek(0, os.SEEK_END) == 0 or (file.seek(-1, os.SEEK_END), file.read())[1] == b"\n"


@dataclass
class Alarms:
    """Reports the beginning and the end of each alarm condition, once each."""

    out: AlarmWriter

    def __post_init__(self) -> None:
        self._on: set[tuple[str, str]] = set()

    def look(self, camera: Camera, figures: CameraFigures, at_s: float) -> None:
        """Compares the current metrics with the active alarms. `at_s`: seconds since 1970, for the written line."""
        state = figures.state
        self._compare(camera, "silent", state.silent_s, camera.silent_s, at_s)
        self._compare(camera, "too_old", state.age_s or 0.0, camera.max_age_s, at_s)
        self._compare(camera, "ood", state.ood_s, 0.0, at_s)
        self._compare(camera, "low_accuracy", state.low_s, 0.0, at_s)

    def _compare(self, camera: Camera, alarm: str, value: float, limit: float, at_s: float) -> None:
        key, on = (camera.name, alarm), value > limit
        if on == (key in self._on):
            return
        (self._on.add if on else self._on.discard)(key)
        record = {
            "time": round(at_s, 3),
            "camera": camera.name,
            "source": camera.label,
            "alarm": alarm,
            "on": on,
            "value_s": round(value, 3),
            "limit_s": limit,
        }
        self.out.write(json.dumps(record) + "\n")
