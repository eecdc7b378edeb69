"""Alarms of cameras as JSON lines, one when a condition begins and one when it ends. They contain no secret."""

import contextlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from app.scale.cameras.camera_file import Camera
from app.scale.cameras.state import CameraFigures
from core.errors import InputError


@contextlib.contextmanager
def alarm_lines(path: Path | None) -> Iterator[TextIO]:
    """Opens the file or stream that alarms are written to. Raises InputError if it cannot be opened."""
    if path is None:
        yield sys.stdout
        return
    try:
        file = path.open("a", encoding="utf-8")
    except OSError as error:
        raise InputError(f"--alarms {path}: cannot be written ({error.strerror}); choose another file") from error
    with file:
        yield file


@dataclass
class Alarms:
    """Reports the beginning and the end of each alarm condition, once each."""

    out: TextIO

    def __post_init__(self) -> None:
        self._on: set[tuple[str, str]] = set()

    def look(self, camera: Camera, figures: CameraFigures, at_s: float) -> None:
        """Compares the current figures with the active alarms. `at_s`: seconds since 1970, for the written line."""
        state = figures.state
        self._say(camera, "silent", state.silent_s, camera.silent_s, at_s)
        self._say(camera, "too_old", state.age_s or 0.0, camera.max_age_s, at_s)
        self._say(camera, "novel", state.novel_s, camera.novel_s, at_s)

    def _say(self, camera: Camera, alarm: str, value: float, limit: float, at_s: float) -> None:
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
        self.out.flush()
