"""The metadata of an exported ONNX file: classes, method, sizes and origin. Nothing here imports onnx."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, NoReturn, get_args

from core.classes import ClassList
from core.errors import InputError
from core.method import MODE_NAMES, Method, draws_dropout, is_temporal

FORMAT = "1"
FORMAT_KEY = "steadyseg_format"
REMEDY = "export it again with steadyseg export"

KindName = Literal["stream", "logits", "classifier"]
PrecisionName = Literal["fp32", "fp16", "int8"]
KINDS: tuple[KindName, ...] = get_args(KindName)
PRECISIONS: tuple[PrecisionName, ...] = get_args(PrecisionName)

MAX_CHARACTERS = 2**20
"""Per entry; metadata with 255 classes has a few ten thousand."""
MAX_SIDE = 2**14
"""Pixels; four times the width of a 4K frame."""
MAX_SCORES = 10_000

TEXT_KEYS = ("kind", "precision", "source", "source_sha256", "licence")
METHOD_TEXT_KEYS = ("mode", "note")
CLASS_KEYS = ("classes", "palette", "void_id")
METHOD_KEYS = tuple(field.name for field in fields(Method) if field.name not in METHOD_TEXT_KEYS)
JSON_KEYS = ("input_height", "input_width", "mean", "std", "head_stride", "versions", "reference_scores")
"""Entries of ONNX metadata_props: text as it is, and JSON; a method has one entry for each of its fields."""


@dataclass(frozen=True)
class GraphMeta:
    """The metadata of a graph file: of a stream, the network alone, or a classifier.

    InputError for values that no export writes.
    """

    kind: KindName
    """stream: uint8 frame and state in, four maps and state out; logits: the network alone; classifier: uint8 pictures
    in, probabilities and uncertainty out."""
    classes: ClassList
    height: int
    """Pixels: the network's fixed input height; the recommended one of the network alone."""
    width: int
    """Pixels: the network's fixed input width; the recommended one of the network alone."""
    mean: tuple[float, float, float]
    """RGB mean to subtract, 0..1; a stream or classifier graph does so itself."""
    std: tuple[float, float, float]
    """RGB standard deviation to divide by, 0..1."""
    method: Method
    """The method that the file computes."""
    head_stride: int
    """1 or 2: the input's size over that of the logits."""
    precision: PrecisionName
    source: str
    """Name of the checkpoint."""
    source_sha256: str
    """Digest of the checkpoint's file, 64 lower-case hexadecimal digits."""
    versions: dict[str, str]
    """Versions, by name, of the software that wrote the file."""
    licence: str
    """Licence note of weights and training data."""
    reference_scores: tuple[float, ...] = ()
    """Novelty scores of held-out frames, ascending; with them the graph computes novelty and expected accuracy."""

    def __post_init__(self) -> None:
        _check(self)

    def to_props(self) -> dict[str, str]:
        """Returns the entries of ONNX metadata_props: text as it is, everything else as JSON."""
        method = asdict(self.method)
        values = {
            "classes": self.classes.names,
            "palette": self.classes.colors,
            "void_id": self.classes.void,
            "input_height": self.height,
            "input_width": self.width,
            **{key: getattr(self, key) for key in JSON_KEYS if not key.startswith("input_")},
            **{key: method[key] for key in METHOD_KEYS},
        }
        return {
            **{key: getattr(self, key) for key in TEXT_KEYS},
            **{key: method[key] for key in METHOD_TEXT_KEYS},
            **{key: json.dumps(value, ensure_ascii=False, allow_nan=False) for key, value in values.items()},
            FORMAT_KEY: FORMAT,
        }  # the format last, so that a file cut off within its metadata is not taken for a whole one


def add_metadata(graph: Any, meta: GraphMeta) -> None:
    """Writes the metadata into an `onnx.ModelProto`."""
    for key, value in meta.to_props().items():
        entry = graph.metadata_props.add()
        entry.key, entry.value = key, value


def from_props(props: Mapping[str, str], name: str) -> GraphMeta:
    """Reads a file's metadata_props; InputError names the file and what is missing or malformed."""
    version = props.get(FORMAT_KEY)
    if version is None:
        raise InputError(
            f"{name}: no {FORMAT_KEY} in its metadata, so it is not a whole SteadySeg export; "
            "use a file that steadyseg export wrote"
        )
    if version != FORMAT:
        raise InputError(f"{name}: export format {_short(version)}, this version reads {FORMAT!r}; {REMEDY}")
    for key in CLASS_KEYS:
        if key not in props:
            what = "class list" if key == "classes" else f"{key} in its class list"
            raise InputError(f"{name}: has no {what}, so its labels would be numbers without meaning; {REMEDY}")
    missing = [key for key in (*TEXT_KEYS, *METHOD_TEXT_KEYS, *JSON_KEYS, *METHOD_KEYS) if key not in props]
    if missing:
        raise InputError(f"{name}: its metadata lacks {', '.join(missing)}; {REMEDY}")
    try:
        return _parse(props)
    except (TypeError, ValueError) as error:  # InputError is a ValueError
        raise InputError(f"{name}: its metadata is malformed ({error}); {REMEDY}") from error


def _parse(props: Mapping[str, str]) -> GraphMeta:
    void = _decode(props, "void_id")  # a classifier has none
    classes = ClassList(_class_names(props), _palette(props), None if void is None else _integer(void, "void_id"))
    texts: dict[str, Any] = {key: props[key] for key in TEXT_KEYS}
    values = {key.removeprefix("input_"): _decode(props, key) for key in JSON_KEYS}
    for key in ("mean", "std"):
        values[key] = tuple(_number(value, key) for value in _list(values[key], key, 3))
    values["reference_scores"] = tuple(
        _number(value, "reference_scores") for value in _list(values["reference_scores"], "reference_scores")
    )
    method: dict[str, Any] = {key: props[key] for key in METHOD_TEXT_KEYS}
    method |= {key: _decode(props, key) for key in METHOD_KEYS}
    method["temperature"] = _number(method["temperature"], "temperature")
    if method["tau"] is not None:
        method["tau"] = _number(method["tau"], "tau")
    return GraphMeta(classes=classes, method=Method(**method), **texts, **values)


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
    """Returns the JSON value of an entry; InputError for NaN, Infinity, and text that is too long or too deep."""
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


def _check(meta: GraphMeta) -> None:
    """Raises InputError for wrong types and values: metadata may come from anywhere."""
    method, is_classifier = meta.method, meta.kind == "classifier"
    temporal = is_temporal(str(method.mode))
    digits = isinstance(meta.source_sha256, str) and re.fullmatch("[0-9a-f]{64}", meta.source_sha256)
    smoothed = "a positive number" if temporal else f"none in mode {_short(method.mode)}"
    for name, value, holds, expected in (
        ("kind", meta.kind, meta.kind in KINDS, " or ".join(KINDS)),
        ("mode", method.mode, method.mode in MODE_NAMES, ", ".join(MODE_NAMES)),
        ("mode", method.mode, not (temporal and is_classifier), "dnn or bnn of a classifier"),
        (
            "classes",
            meta.classes,
            (meta.classes.void is None) == is_classifier,
            "a void id and colours, but none of a classifier",
        ),
        (
            "width",
            meta.width,
            meta.width == meta.height or not is_classifier,
            "the height: a classifier's pictures are square",
        ),
        ("precision", meta.precision, meta.precision in PRECISIONS, ", ".join(PRECISIONS)),
        ("height", meta.height, _within(meta.height, 1, MAX_SIDE), f"1 to {MAX_SIDE} pixels"),
        ("width", meta.width, _within(meta.width, 1, MAX_SIDE), f"1 to {MAX_SIDE} pixels"),
        ("mean", meta.mean, _are_finite(meta.mean), "three finite numbers"),
        ("std", meta.std, _are_finite(meta.std) and min(meta.std) > 0, "three positive numbers"),
        ("temperature", method.temperature, _is_positive(method.temperature), "a positive number"),
        ("samples", method.samples, _within(method.samples, 1, 10_000), "1 to 10000"),
        (
            "samples",
            method.samples,
            method.samples == 1 or draws_dropout(method.mode),
            f"1 in mode {_short(method.mode)}, which draws no masks",
        ),
        ("tau", method.tau, _is_positive(method.tau) if temporal else method.tau is None, smoothed),
        (
            "window",
            method.window,
            method.window is None or (temporal and _within(method.window, 0, 1000)),
            "none, or 0 to 1000 in a vq mode",
        ),
        ("motion", method.motion, isinstance(method.motion, bool), "true or false"),
        (
            "motion",
            method.motion,
            not method.motion or (temporal and method.window is None),
            "false but in a vq mode without a window",
        ),
        ("calibrated", method.calibrated, isinstance(method.calibrated, bool), "true or false"),
        ("adaptive", method.adaptive, isinstance(method.adaptive, bool), "true or false"),
        ("note", method.note, _is_text(method.note, 1000), "printable text of at most 1000 characters"),
        ("head_stride", meta.head_stride, _within(meta.head_stride, 1, 2), "1 or 2"),
        ("source", meta.source, _is_text(meta.source, 1000) and meta.source, "the checkpoint's name"),
        ("source_sha256", meta.source_sha256, digits, "64 lower-case hexadecimal digits"),
        ("versions", meta.versions, _are_versions(meta.versions), "version texts by name"),
        (
            "licence",
            meta.licence,
            _is_text(meta.licence, 10_000, newlines=True),
            "printable text of at most 10000 characters",
        ),
        (
            "reference_scores",
            meta.reference_scores,
            _are_scores(meta.reference_scores),
            f"at most {MAX_SCORES} ascending numbers",
        ),
    ):
        if not holds:
            raise InputError(f"{name} is {_short(value)}, expected {expected}")


def _within(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1e6  # NaN compares false


def _are_finite(values: Any) -> bool:
    return isinstance(values, tuple) and len(values) == 3 and all(abs(value) <= 1e6 for value in values)


def _are_scores(values: Any) -> bool:
    if not isinstance(values, tuple) or len(values) > MAX_SCORES:
        return False
    return all(abs(value) <= 1e9 for value in values) and list(values) == sorted(values)  # NaN compares false


def _is_text(value: Any, longest: int, *, newlines: bool = False) -> bool:
    """True for text that a terminal and a page can show: it has no control characters or lone surrogates."""
    if not isinstance(value, str) or len(value) > longest:
        return False
    return (value.replace("\n", "") if newlines else value).isprintable()


def _are_versions(versions: Any) -> bool:
    if not isinstance(versions, dict) or len(versions) > 100:
        return False
    return all(_is_text(text, 200) for entry in versions.items() for text in entry)


def _short(value: Any) -> str:
    """Returns a value as one line for a message, cut where it is long."""
    try:
        text = repr(value if not isinstance(value, str | list | tuple) else value[:200])
    except (ValueError, RecursionError):  # an int of more than 4300 digits, a list in a list in a list ...
        text = f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= 80 else f"{text[:77]}..."
