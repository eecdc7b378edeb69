"""What travels inside an exported ONNX file: the facts without which its numbers mean nothing. No onnx here."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from core.classes import ClassList
from core.errors import InputError
from core.method import MODE_NAMES, Method, ModeName, draws_dropout, is_temporal

FORMAT = "1"
FORMAT_KEY = "steadyseg_format"
REMEDY = "export it again with steadyseg export"

KINDS = ("stream", "logits", "classifier")
PRECISIONS = ("fp32", "fp16", "int8")

MAX_CHARACTERS = 2**20
"""Per entry; a record of ours with 255 classes and its metrics has a few ten thousand."""
MAX_SIDE = 2**14
"""Pixels; four times the width of a 4K frame."""

TEXT_KEYS = ("kind", "mode", "precision", "source", "source_sha256", "licence")
NUMBER_KEYS = {"input_height": "height", "input_width": "width"}
"""Entry -> field, where the names differ."""
JSON_KEYS = (
    "input_height",
    "input_width",
    "mean",
    "std",
    "temperature",
    "samples",
    "tau",
    "window",
    "head_stride",
    "versions",
)
OPTIONAL_KEYS = ("motion", "calibrated", "note", "metrics", "adaptive", "own_world")
"""JSON too; files of earlier releases lack some."""
MAX_SCORES = 10_000
CLASS_KEYS = ("classes", "palette", "void_id")


@dataclass(frozen=True)
class StreamMeta:
    """The record of an exported file; InputError for values that no export of ours can have."""

    kind: Literal["stream", "logits", "classifier"]
    """stream: uint8 frame and state in, four maps and state out; logits: the network alone; classifier: uint8 pictures
    in, probabilities and uncertainty out."""
    classes: ClassList
    height: int
    """Pixels: the network's fixed input height; for logits the recommended one."""
    width: int
    """Pixels: the network's fixed input width; for logits the recommended one."""
    mean: tuple[float, float, float]
    """RGB mean to subtract, 0..1; a stream file does so inside."""
    std: tuple[float, float, float]
    """RGB standard deviation to divide by, 0..1."""
    temperature: float
    """What the logits are divided by; 1: not calibrated."""
    mode: ModeName
    samples: int
    """Dropout passes per frame; 1 without dropout."""
    tau: float | None
    """Decay time of the temporal smoothing in source frames; None: the mode has none."""
    window: int | None
    """Previous frames in the exact window; None: recursion, or no temporal smoothing."""
    head_stride: int
    """1 or 2: the input's size over that of the logits."""
    precision: Literal["fp32", "fp16", "int8"]
    source: str
    """Name of the checkpoint."""
    source_sha256: str
    """Of the checkpoint's file, 64 lower-case hexadecimal digits."""
    versions: dict[str, str]
    """Of the software that wrote the file, by name."""
    licence: str
    """Licence note of weights and training data."""
    motion: bool = False
    """Whether the mean follows motion, which two inputs tell."""
    calibrated: bool | None = None
    """Whether the temperature was fitted for this very method; None: an older file does not say."""
    note: str = ""
    """Why no fitted temperature is inside, where none is."""
    adaptive: bool = False
    """Whether every frame has a temperature of its own."""
    own_world: list[float] = field(default_factory=list)
    """Scores of held-back frames, ascending; with them the graph tells of whole frames (novelty, expected accuracy)."""
    metrics: dict[str, Any] = field(default_factory=dict)
    """Measured figures, as the checkpoint has them."""

    def __post_init__(self) -> None:
        _check(self)

    @property
    def method(self) -> Method:
        """What the file computes."""
        calibrated = self.temperature != 1.0 if self.calibrated is None else self.calibrated
        note = self.note
        if self.calibrated is None:
            note = (
                "an older file: it does not say which method its temperature was fitted with"
                if calibrated
                else "none inside"
            )
        return Method(
            self.mode,
            self.samples,
            self.tau,
            self.window,
            self.motion,
            temperature=self.temperature,
            calibrated=calibrated,
            adaptive=self.adaptive,
            note=note,
        )

    def to_props(self) -> dict[str, str]:
        """One entry of ONNX metadata_props per fact: text as it is, everything else as JSON."""
        props = {key: getattr(self, key) for key in TEXT_KEYS}
        props["classes"] = json.dumps(self.classes.names, ensure_ascii=False)
        props["palette"] = json.dumps(self.classes.colors)
        props["void_id"] = json.dumps(self.classes.void)
        for key in (*JSON_KEYS, *OPTIONAL_KEYS):
            props[key] = json.dumps(getattr(self, NUMBER_KEYS.get(key, key)), ensure_ascii=False, allow_nan=False)
        return {
            **props,
            FORMAT_KEY: FORMAT,
        }  # last, so that a file cut off within its metadata is not taken for a whole one


def add_metadata(graph: Any, meta: StreamMeta) -> None:
    """Writes the record into an `onnx.ModelProto`."""
    for key, value in meta.to_props().items():
        entry = graph.metadata_props.add()
        entry.key, entry.value = key, value


def from_props(props: Mapping[str, str], name: str) -> StreamMeta:
    """The record in a file's metadata_props; InputError names the file and what is missing or malformed."""
    version = props.get(FORMAT_KEY)
    if version is None:
        raise InputError(
            f"{name}: no {FORMAT_KEY} in its metadata, so it is not a whole SteadySeg export; "
            "use a file that steadyseg export wrote"
        )
    if version != FORMAT:
        raise InputError(
            f"{name}: export format {_short(version)}, this version reads {FORMAT!r}; use the release that wrote it"
        )
    for key in CLASS_KEYS:
        if key not in props:
            what = "class list" if key == "classes" else f"{key} in its class list"
            raise InputError(f"{name}: has no {what}, so its labels would be numbers without meaning; {REMEDY}")
    missing = [key for key in (*TEXT_KEYS, *JSON_KEYS) if key not in props]
    if missing:
        raise InputError(f"{name}: its metadata lacks {', '.join(missing)}; {REMEDY}")
    try:
        return _parse(props)
    except (TypeError, ValueError) as error:  # InputError is a ValueError
        raise InputError(f"{name}: its metadata is malformed ({error}); {REMEDY}") from error


def _parse(props: Mapping[str, str]) -> StreamMeta:
    void = _decode(props, "void_id")  # a classifier has none
    classes = ClassList(_class_names(props), _palette(props), None if void is None else _integer(void, "void_id"))
    values: dict[str, Any] = {key: props[key] for key in TEXT_KEYS}
    for key in JSON_KEYS:
        values[NUMBER_KEYS.get(key, key)] = _decode(props, key)
    for key in ("mean", "std"):
        values[key] = tuple(_number(value, key) for value in _list(values[key], key, 3))
    values["temperature"] = _number(values["temperature"], "temperature")
    if values["tau"] is not None:
        values["tau"] = _number(values["tau"], "tau")
    values |= {key: _decode(props, key) for key in OPTIONAL_KEYS if key in props}
    return StreamMeta(classes=classes, **values)


def _class_names(props: Mapping[str, str]) -> tuple[str, ...]:
    names = _list(_decode(props, "classes"), "classes")
    for name in names:
        if not _is_text(name, 100) or not name:
            raise InputError(f"classes has the name {_short(name)}, expected 1 to 100 printable characters")
    return tuple(names)


def _palette(props: Mapping[str, str]) -> tuple[tuple[int, int, int], ...]:
    colors = []
    for color in _list(_decode(props, "palette"), "palette"):
        red, green, blue = (_integer(value, "palette") for value in _list(color, "palette", 3))
        colors.append((red, green, blue))
    return tuple(colors)


def _decode(props: Mapping[str, str], key: str) -> Any:
    """The JSON value of an entry. NaN and Infinity are no JSON, and depth and length end here."""
    text = props[key]
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"{key} has {len(text)} characters, at most {MAX_CHARACTERS} are read")

    def refuse(constant: str) -> NoReturn:
        raise InputError(f"{key} has the value {constant}")

    try:
        return json.loads(text, parse_constant=refuse)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{key} is not JSON: {_short(text)}") from error


def _list(value: Any, key: str, length: int | None = None) -> list[Any]:
    if not isinstance(value, list) or (length is not None and len(value) != length):
        expected = "a list" if length is None else f"a list of {length}"
        raise InputError(f"{key} is {_short(value)}, expected {expected}")
    return value


def _number(value: Any, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{key} is {_short(value)}, expected a number")
    try:
        return float(value)
    except OverflowError as error:
        raise InputError(f"{key} is {_short(value)}, which is too large") from error


def _integer(value: Any, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{key} is {_short(value)}, expected a whole number")
    return value


def _check(meta: StreamMeta) -> None:
    """A record may come from anywhere: wrong types and values end here and not inside an executor."""
    temporal, classifier = is_temporal(str(meta.mode)), meta.kind == "classifier"
    digits = isinstance(meta.source_sha256, str) and re.fullmatch("[0-9a-f]{64}", meta.source_sha256)
    smoothed = "a positive number" if temporal else f"none in mode {_short(meta.mode)}"
    for name, holds, expected in (
        ("kind", meta.kind in KINDS, " or ".join(KINDS)),
        ("mode", meta.mode in MODE_NAMES, ", ".join(MODE_NAMES)),
        ("mode", not (temporal and classifier), "dnn or bnn of a classifier"),
        ("classes", (meta.classes.void is None) == classifier, "a void id and colours, but none of a classifier"),
        ("width", meta.width == meta.height or not classifier, "the height: a classifier's pictures are square"),
        ("precision", meta.precision in PRECISIONS, ", ".join(PRECISIONS)),
        ("height", _within(meta.height, 1, MAX_SIDE), f"1 to {MAX_SIDE} pixels"),
        ("width", _within(meta.width, 1, MAX_SIDE), f"1 to {MAX_SIDE} pixels"),
        ("mean", _are_finite(meta.mean), "three finite numbers"),
        ("std", _are_finite(meta.std) and min(meta.std) > 0, "three positive numbers"),
        ("temperature", _is_positive(meta.temperature), "a positive number"),
        ("samples", _within(meta.samples, 1, 10_000), "1 to 10000"),
        (
            "samples",
            meta.samples == 1 or draws_dropout(meta.mode),
            f"1 in mode {_short(meta.mode)}, which draws no masks",
        ),
        ("tau", _is_positive(meta.tau) if temporal else meta.tau is None, smoothed),
        (
            "window",
            meta.window is None or (temporal and _within(meta.window, 0, 1000)),
            "none, or 0 to 1000 in a vq mode",
        ),
        ("motion", isinstance(meta.motion, bool), "true or false"),
        ("motion", not meta.motion or (temporal and meta.window is None), "false but in a vq mode without a window"),
        ("head_stride", _within(meta.head_stride, 1, 2), "1 or 2"),
        ("source", _is_text(meta.source, 1000) and meta.source, "the checkpoint's name"),
        ("source_sha256", digits, "64 lower-case hexadecimal digits"),
        ("versions", _are_versions(meta.versions), "version texts by name"),
        ("licence", _is_text(meta.licence, 10_000, newlines=True), "printable text of at most 10000 characters"),
        ("calibrated", meta.calibrated is None or isinstance(meta.calibrated, bool), "true, false or null"),
        ("adaptive", isinstance(meta.adaptive, bool), "true or false"),
        ("own_world", _are_scores(meta.own_world), f"at most {MAX_SCORES} ascending numbers"),
        ("note", _is_text(meta.note, 1000), "printable text of at most 1000 characters"),
        ("metrics", isinstance(meta.metrics, dict) and _fits_json(meta.metrics), "a JSON object of finite numbers"),
    ):
        if not holds:
            raise InputError(f"{name} is {_short(getattr(meta, name))}, expected {expected}")


def _within(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1e6  # NaN compares false


def _are_finite(values: Any) -> bool:
    return isinstance(values, tuple) and len(values) == 3 and all(abs(value) <= 1e6 for value in values)


def _are_scores(values: Any) -> bool:
    if not isinstance(values, list) or len(values) > MAX_SCORES:
        return False
    numbers = all(type(one) in (int, float) and abs(one) <= 1e9 for one in values)  # NaN compares false
    return numbers and values == sorted(values)


def _is_text(value: Any, longest: int, *, newlines: bool = False) -> bool:
    """Text that a terminal and a page can show: control characters and lone surrogates are not printable."""
    if not isinstance(value, str) or len(value) > longest:
        return False
    return (value.replace("\n", "") if newlines else value).isprintable()


def _are_versions(versions: Any) -> bool:
    if not isinstance(versions, dict) or len(versions) > 100:
        return False
    return all(_is_text(text, 200) for entry in versions.items() for text in entry)


def _fits_json(value: Any) -> bool:
    try:
        return len(json.dumps(value, allow_nan=False)) <= MAX_CHARACTERS
    except (TypeError, ValueError, RecursionError):
        return False


def _short(value: Any) -> str:
    """A value in a message: one line, cut where it is long."""
    try:
        text = repr(value if not isinstance(value, str | list | tuple) else value[:200])
    except (ValueError, RecursionError):  # an int of more than 4300 digits, a list in a list in a list ...
        text = f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= 80 else f"{text[:77]}..."
