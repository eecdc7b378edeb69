"""Reading of the TOML file of cameras; every key is checked, and no secret is repeated in a message."""

import re
import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from steadyseg.app.scale.flags import flag_reader
from steadyseg.app.sources.url import redact
from steadyseg.app.video.flags import VideoOptions
from steadyseg.core.errors import InputError
from steadyseg.core.options import is_number
from steadyseg.export.run.provider_options import read_provider_options

OPTIONS = tuple(
    "model mode samples tau motion calibrated adaptive size executor precision device provider_options".split()
)
"""Flags of `steadyseg video` that apply to a camera that is watched without writing a video."""
NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"


@dataclass(frozen=True)
class Camera:
    """One stream. All fields but name and source can be set for all cameras in [defaults]."""

    name: str
    """Name in metrics and alarms: letters, digits, _ . - and at most 64 characters."""
    source: str
    """A source as of `steadyseg video`; a file is played in real time, in a loop."""
    sample_fps: float = 0.0
    """Frames to segment per second, evenly spaced; 0: all."""
    fps: float = 25.0
    """Expected frame rate of the camera; before cameras are opened, it determines their division among workers."""
    silent_s: float = 10.0
    """An alarm is raised after this many seconds without a segmented frame."""
    max_age_s: float = 2.0
    """An alarm is raised if a segmented frame is older than this, in seconds since its arrival."""

    @property
    def label(self) -> str:
        """The source without user, password and query."""
        return redact(self.source)

    @property
    def load(self) -> float:
        """Frames to segment per second."""
        return min(self.sample_fps, self.fps) if self.sample_fps else self.fps


SETTINGS = {field.name: field.default for field in fields(Camera) if field.name not in ("name", "source")}
LIMITS = {
    "sample_fps": (0, 1000),
    "fps": (0.001, 1000),
    "silent_s": (0.1, 1e6),
    "max_age_s": (0.01, 1e6),
}


@dataclass(frozen=True)
class CameraSet:
    """The cameras of a file and the settings that they share."""

    options: VideoOptions
    cameras: tuple[Camera, ...]


def read_cameras(path: Path) -> CameraSet:
    """Reads a file of cameras. InputError for unknown keys, wrong values, repeated names and files that are no TOML."""
    try:
        record = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); expected a TOML file of cameras") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: no TOML ({redacted(str(error))})") from None  # `error` may quote an address
    _known(record, ("options", "defaults", "camera"), str(path))
    options = _read_options(_table(record, "options", path), path)
    defaults = _read_settings(_table(record, "defaults", path), f"{path}, [defaults]")
    listed = record.get("camera", [])
    if not isinstance(listed, list) or not listed or not all(isinstance(one, dict) for one in listed):
        raise InputError(f"{path}: names no camera; expected a [[camera]] with name and source for each")
    cameras = tuple(_read_camera(one, defaults, f"{path}, camera {place}") for place, one in enumerate(listed, start=1))
    names = [camera.name for camera in cameras]
    double = next((name for name in names if names.count(name) > 1), None)
    if double:
        raise InputError(f"{path}: two cameras are called {double!r}")
    return CameraSet(options, cameras)


def _read_options(table: dict[str, Any], path: Path) -> VideoOptions:
    where = f"{path}, [options]"
    _known(table, OPTIONS, where)
    try:
        flags = tuple((name, _word(value)) for name, value in table.items() if name != "provider_options")
        options = flag_reader(VideoOptions())(flags).options
        asked = table.get("provider_options", [])
        if not isinstance(asked, list) or not all(isinstance(word, str) for word in asked):
            raise InputError('provider_options must be a list such as ["prefer_nhwc=1"]')
        read_provider_options(asked)
        return replace(options, compute=replace(options.compute, provider_options=tuple(asked)))
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _word(value: object) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _read_camera(table: dict[str, Any], defaults: dict[str, float], where: str) -> Camera:
    _known(table, ("name", "source", *SETTINGS), where)
    name, source = table.get("name"), table.get("source")
    if not isinstance(name, str) or not re.fullmatch(NAME, name):
        raise InputError(f"{where}: its name must be letters, digits, _ . - (at most 64), got {str(name)[:80]!r}")
    if not isinstance(source, str) or not source:
        raise InputError(f"{where} ({name}): has no source; expected an address, a camera's number or a file")
    own = {key: value for key, value in table.items() if key in SETTINGS}
    return Camera(name, source, **(defaults | _read_settings(own, f"{where} ({name})")))


def _read_settings(table: dict[str, Any], where: str) -> dict[str, float]:
    _known(table, tuple(SETTINGS), where)
    for key, value in table.items():
        low, high = LIMITS[key]
        if not is_number(value, low, high):
            raise InputError(f"{where}: {key} must be a number in {low:g}..{high:g}, got {redacted(str(value))[:40]!r}")
    return {key: float(value) for key, value in table.items()}


def _table(record: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    table = record.get(name, {})
    if not isinstance(table, dict):
        raise InputError(f"{path}: {name} must be a table, [{name}]")
    return table


def _known(table: dict[str, Any], keys: tuple[str, ...], where: str) -> None:
    unknown = next((key for key in table if key not in keys), None)
    if unknown is not None:
        raise InputError(f"{where}: unknown key {redacted(unknown)[:40]!r}; choose from {', '.join(keys)}")


def redacted(text: str) -> str:
    """The text with the credentials of every address in it masked."""
    return re.sub(r"[A-Za-z][A-Za-z0-9+.-]*://\S+", lambda found: redact(found[0]), text)
