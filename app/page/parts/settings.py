"""The settings behind the page's controls: network, method, and the drawing of the maps."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any

from steadyseg.app.palette import display_classes
from steadyseg.app.video.views import MAP_NAMES, MapName
from steadyseg.core.errors import InputError
from steadyseg.core.method import MODE_NAMES, PUBLISHED_TAU, MethodOptions, ModeName, is_temporal, mode_title
from steadyseg.core.model.checkpoint import CheckpointMeta, read_meta
from steadyseg.core.options import is_number
from steadyseg.core.system.machine import has_cuda
from steadyseg.export.file.metadata import GraphMeta
from steadyseg.export.file.onnx_file import read_onnx
from steadyseg.runtime.open_file import require_stream
from steadyseg.runtime.open_model import find_model, is_graph, refuse_classifier
from steadyseg.seg.pretrained import list_segmenters

MODES: tuple[tuple[str, ModeName], ...] = tuple((mode_title(mode), mode) for mode in MODE_NAMES)
FIRST_MODE: ModeName = "vq-dnn"
SAMPLES, MAX_SAMPLES = 5, 50
"""The papers use 30 samples; the included networks have a temperature for 5, which is fast enough to watch on two
cores."""
TAU, MIN_TAU, MAX_TAU = PUBLISHED_TAU, 0.25, 16.0
"""Decay time of the temporal mean in frames; the first value stands for the network's own. 16 frames at 15 frames/s
are a second."""


def method_options(
    mode: ModeName = FIRST_MODE,
    samples: float = SAMPLES,
    tau: float = TAU,
    motion: bool = True,
    calibrated: bool = True,
) -> MethodOptions:
    """Method options from the values of the page's controls. Controls that a mode does not use are hidden, and their
    values are ignored."""
    temporal = is_temporal(mode)
    return MethodOptions(
        mode,
        round(samples) if mode == "bnn" else None,
        tau if temporal and tau != TAU else None,
        motion if temporal else None,
        calibrated=None if calibrated else False,
    )


@dataclass(frozen=True)
class MethodSettings:
    """Settings that determine the segmenter. A change restarts the temporal mean on the next frame."""

    model: str
    options: MethodOptions = field(default_factory=method_options)


@dataclass(frozen=True)
class ViewSettings:
    """Settings that change only the pictures and not the temporal state."""

    second: MapName = "uncertainty"
    opacity: float = 0.5
    """Opacity of the class colours over the camera's picture, 0..1."""
    min_confidence: float = 0.0
    """Pixels of lower confidence, 0..1, are grey."""
    hidden: frozenset[int] = frozenset()
    """Class ids that get no colour."""
    mark_changes: bool = False
    """Pixels whose label changed since the previous frame are white."""


@dataclass(frozen=True)
class Settings:
    """The controls of one visitor."""

    method: MethodSettings
    view: ViewSettings = ViewSettings()
    against: MethodSettings | None = None
    """Compare: the method of the left picture; the second picture then is `method`'s own overlay."""
    watch: tuple[float, float] | None = None
    """(x, y) of the inspected pixel as shares of width and height."""

    @property
    def methods(self) -> tuple[MethodSettings, ...]:
        """The methods that run on each frame: one method, or in Compare the left one, then the right one."""
        return (self.method,) if self.against is None else (self.against, self.method)


def settings_from(record: Mapping[str, Any], models: Mapping[str, str]) -> Settings:
    """Reads the settings that a browser sent; `models` is the result of `offered_models`. Raises InputError for
    anything that the controls cannot send."""
    model = models.get(str(record.get("model")))
    if model is None:
        raise InputError("the page asked for a model that it does not offer; reload it")
    mode, against, second = record.get("mode", FIRST_MODE), record.get("against"), record.get("second", "uncertainty")
    if mode not in MODE_NAMES or against not in (None, *MODE_NAMES) or second not in MAP_NAMES:
        raise InputError("the page asked for a method or view that does not exist; reload it")
    values = (
        between(record.get("samples", SAMPLES), "samples", 1, MAX_SAMPLES),
        between(record.get("tau", TAU), "tau", MIN_TAU, MAX_TAU),
        bool(record.get("motion", True)),
        bool(record.get("calibrated", True)),
    )
    left = method_settings(model, against, *values) if against else None
    if left and is_graph(model):
        held = read_graph(model).method
        if against != "dnn" or not held.tau:
            raise InputError(f"{Path(model).name} holds {held} alone; what it can be compared with is a single frame")
        left = MethodSettings(model, MethodOptions(mode="dnn"))
    view = ViewSettings(
        second=second,
        opacity=between(record.get("opacity", 0.5), "opacity", 0, 1),
        min_confidence=between(record.get("min_confidence", 0), "min_confidence", 0, 1),
        hidden=frozenset(round(between(value, "hidden", 0, 255)) for value in read_list(record, "hidden", 256)),
        mark_changes=bool(record.get("mark_changes", False)),
    )
    watch = [between(value, "watch", 0, 1) for value in read_list(record, "watch", 2)]
    method = method_settings(model, mode, *values)
    return Settings(method, view, left, (watch[0], watch[1]) if len(watch) == 2 else None)


def method_settings(model: str, *values: Any) -> MethodSettings:
    """The settings of a model; `values`: arguments of `method_options`. A graph file has one method, so it ignores
    them."""
    return MethodSettings(model, MethodOptions() if is_graph(model) else method_options(*values))


def between(value: Any, key: str, low: float, high: float) -> float:
    """`value` if it is a number in low..high; InputError otherwise."""
    if not is_number(value, low, high):
        raise InputError(f"{key} must be a number in {low:g}..{high:g}")
    return float(value)


def read_list(record: Mapping[str, Any], key: str, limit: int) -> list[Any]:
    """A list of the record, empty if absent; InputError if it is no list or too long."""
    value = record.get(key) or []
    if not isinstance(value, list) or len(value) > limit:
        raise InputError(f"{key} must be a list of at most {limit}")
    return value


def offered_models(model: str) -> dict[str, str]:
    """Name on the page -> pretrained name or file, of the included checkpoints and of the page's first model. The names
    hold no folder of this machine."""
    names = list_segmenters()
    return {Path(name).name: name for name in (names if model in names else [model, *names])}


def model_meta(model: str) -> CheckpointMeta:
    """The record of a checkpoint or the metadata of a stateful graph file, with the classes in display colours. Raises
    InputError for a missing file."""
    meta = read_graph(model).record() if is_graph(model) else read_meta(find_model(model))
    refuse_classifier(meta, model)
    return replace(meta, classes=display_classes(meta.classes))


@lru_cache(maxsize=4)
def read_graph(model: str) -> GraphMeta:
    """The metadata of a graph file that segments a stream; InputError for any other file."""
    file = read_onnx(Path(model))
    require_stream(file)
    return file.meta


def list_limits(meta: CheckpointMeta) -> list[str]:
    """Limitations of the model in words, such as a missing calibration."""
    notes = []
    if not meta.calibration:
        notes.append("not calibrated: confidences are the network's own")
    if meta.architecture == "graph":
        notes.append("a file of one method, which the controls cannot change")
    if not has_cuda():
        notes.append("no GPU found: runs on the CPU")
    return notes


def notices(meta: CheckpointMeta) -> str:
    """`list_limits` as HTML."""
    return " ".join(f"<span class='notice'>{escape(note)}</span>" for note in list_limits(meta))
