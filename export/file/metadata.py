"""The metadata of an exported ONNX file: classes, method, sizes and origin. Nothing here imports onnx."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, get_args

from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError, shorten
from steadyseg.core.expected import is_expected, read_expected
from steadyseg.core.method import Method, is_temporal, method_of_fit, settings
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.model.thresholds import is_threshold_record
from steadyseg.core.options import is_number, is_whole
from steadyseg.core.reference import ReferenceScores
from steadyseg.core.system.json_text import parse_json

FORMAT = "1"
FORMAT_KEY = "steadyseg_format"
REMEDY = "export it again with steadyseg export"

KindName = Literal["stream", "logits", "classifier"]
PrecisionName = Literal["fp32", "fp16"]
KINDS: tuple[KindName, ...] = get_args(KindName)
PRECISIONS: tuple[PrecisionName, ...] = get_args(PrecisionName)

MAX_CHARACTERS = 2**20
"""Limit per entry; metadata of 255 classes has a few ten thousand."""
MAX_SIDE = 2**14
"""Limit in pixels; four times the width of a 4K frame."""
MAX_SCORES = 10_000

TEXT_KEYS = ("kind", "precision", "source", "source_sha256", "licence")
METHOD_TEXT_KEYS = ("mode", "note")
CLASS_KEYS = ("classes", "palette", "void_id")
METHOD_KEYS = tuple(one.name for one in fields(Method) if one.name not in METHOD_TEXT_KEYS)
RISK_KEYS = ("level", "threshold")
JSON_KEYS = ("input_height", "input_width", "mean", "std", "head_stride", "versions", "reference_scores")
OPTIONAL_KEYS = ("fit", "thresholds", "expected")
"""Entries of ONNX metadata_props: text as it is, and JSON; a method has one entry for each of its fields."""


@dataclass(frozen=True)
class GraphMeta:
    """The metadata of a graph file: of a stream, the network alone, or a classifier.

    InputError for values that no export writes.
    """

    kind: KindName
    """A stream maps uint8 frame and state to four maps and state; a classifier maps uint8 pictures to probabilities and
    uncertainty. Kind logits is the network alone."""
    classes: ClassList
    height: int
    """Input height in pixels; fixed, but only a recommendation in a graph of the network alone."""
    width: int
    """Input width in pixels; fixed, but only a recommendation in a graph of the network alone."""
    mean: tuple[float, float, float]
    """RGB mean to subtract, 0..1; a stream or classifier graph does so itself."""
    std: tuple[float, float, float]
    """RGB standard deviation to divide by, 0..1."""
    method: Method
    """The method that the file computes."""
    head_stride: int
    """1 or 2: the input's size over the logits' size."""
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
    """Scores of held-out frames, ascending; with them the graph computes familiarity and expected accuracy."""
    fit: dict[str, Any] = field(default_factory=dict)
    """The calibration of the method, as `CheckpointMeta.calibration` has it; empty in files without one."""
    thresholds: dict[str, Any] = field(default_factory=dict)
    """As `CheckpointMeta.thresholds`."""
    expected: dict[str, Any] = field(default_factory=dict)
    """Record of the expected accuracy (core/expected.py), beside `reference_scores`."""

    def __post_init__(self) -> None:
        _check(self)

    @property
    def reference(self) -> ReferenceScores | None:
        """The statistics of a graph that computes familiarity."""
        scores = self.reference_scores
        return ReferenceScores(scores, expected=read_expected(self.expected)) if scores else None

    @property
    def state_size(self) -> tuple[int, int]:
        """(h, w) of the logits and of the temporal mean."""
        return -(-self.height // self.head_stride), -(-self.width // self.head_stride)

    def fit_in_use(self, method: Method) -> dict[str, Any]:
        """The calibration of the file's method, or an empty dict."""
        return self.fit if method.calibrated else {}

    def record(self) -> CheckpointMeta:
        """Returns the metadata as a checkpoint's record, with the one method if it is calibrated."""
        fit = settings(self.method) | {"temperature": self.method.temperature} | self.fit
        found = CheckpointMeta("graph", {}, self.classes, self.height, self.width, self.mean, self.std)
        found = replace(found, licence=self.licence, thresholds=self.thresholds)
        return found.with_fit(self.method, fit) if self.method.calibrated else found

    def to_props(self) -> dict[str, str]:
        """Returns the entries of ONNX metadata_props: text unchanged, everything else as JSON."""
        method = asdict(self.method)
        values = {
            "classes": self.classes.names,
            "palette": self.classes.colors,
            "void_id": self.classes.void,
            "input_height": self.height,
            "input_width": self.width,
            **{key: getattr(self, key) for key in JSON_KEYS if not key.startswith("input_")},
            **{key: method[key] for key in METHOD_KEYS},
            **{key: value for key in OPTIONAL_KEYS if (value := getattr(self, key))},
        }
        return {
            **{key: getattr(self, key) for key in TEXT_KEYS},
            **{key: method[key] for key in METHOD_TEXT_KEYS},
            **{key: json.dumps(value, ensure_ascii=False, allow_nan=False) for key, value in values.items()},
            FORMAT_KEY: FORMAT,
        }  # the format last, so that a file cut off within its metadata is not taken for a whole file


def from_props(props: Mapping[str, str], name: str) -> GraphMeta:
    """Reads a file's metadata_props; InputError names the file and what is missing or malformed."""
    require_format(props, name)
    props = {"average": '"arithmetic"', **props}  # which files of versions before 0.3 lack
    if (version := props[FORMAT_KEY]) != FORMAT:
        raise InputError(f"{name}: export format {shorten(version)}, this version reads {FORMAT!r}; {REMEDY}")
    for key in CLASS_KEYS:
        if key not in props:
            what = "class list" if key == "classes" else f"{key} in its class list"
            raise InputError(f"{name}: has no {what}, so its labels would be numbers without meaning; {REMEDY}")
    if missing := [key for key in (*TEXT_KEYS, *METHOD_TEXT_KEYS, *JSON_KEYS, *METHOD_KEYS) if key not in props]:
        raise InputError(f"{name}: its metadata lacks {', '.join(missing)}; {REMEDY}")
    try:
        return _parse(props)
    except (TypeError, ValueError) as error:  # InputError is a ValueError
        raise InputError(f"{name}: its metadata is malformed ({error}); {REMEDY}") from error


def require_format(props: Mapping[str, str], name: str) -> None:
    """Raises InputError for the metadata of another program's file."""
    if FORMAT_KEY not in props:
        raise InputError(
            f"{name}: no {FORMAT_KEY} in its metadata, so it is not a whole SteadySeg export. Use a file of steadyseg "
            f"export, or wrap another program's network: steadyseg wrap {name} -o mine.onnx --mean R G B --std R G B"
        )


def _parse(props: Mapping[str, str]) -> GraphMeta:
    classes = ClassList.of_record(*(_decode(props, key) for key in CLASS_KEYS))
    texts: dict[str, Any] = {key: props[key] for key in TEXT_KEYS}
    decoded = {key.removeprefix("input_"): _decode(props, key) for key in (*JSON_KEYS, *props.keys() & OPTIONAL_KEYS)}
    values: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in decoded.items()}
    method: dict[str, Any] = {key: props[key] for key in METHOD_TEXT_KEYS}
    method |= {key: _decode(props, key) for key in METHOD_KEYS}
    if props.get("lag", "0") != "0":  # of versions before 0.3
        raise InputError("its maps come late by a lag, which is gone")
    return GraphMeta(classes=classes, method=Method(**method), **texts, **values)


def _decode(props: Mapping[str, str], key: str) -> Any:
    """Returns the JSON value of an entry; InputError for text that is too long, too deep or no JSON."""
    text = props[key]
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"{key} has {len(text)} characters, at most {MAX_CHARACTERS} are read")
    try:
        return parse_json(text)
    except ValueError as error:
        raise InputError(f"{key} is not JSON: {shorten(text)} ({error})") from error


def _check(meta: GraphMeta) -> None:
    """Raises InputError for wrong types and values, which metadata from elsewhere may hold; `Method` checks its own
    fields."""
    is_classifier, method = meta.kind == "classifier", meta.method
    digits = isinstance(meta.source_sha256, str) and re.fullmatch("[0-9a-f]{64}", meta.source_sha256)
    has_void, is_square = meta.classes.void is not None, meta.width == meta.height
    scores, pixels = meta.reference_scores, f"1 to {MAX_SIDE} pixels"
    for name, value, holds, expected in (
        ("kind", meta.kind, meta.kind in KINDS, " or ".join(KINDS)),
        ("mode", method.mode, not (is_classifier and is_temporal(method.mode)), "dnn or bnn of a classifier"),
        ("classes", meta.classes, has_void != is_classifier, "a void id and colours, but none of a classifier"),
        ("width", meta.width, is_square or not is_classifier, "the height: a classifier's pictures are square"),
        ("precision", meta.precision, meta.precision in PRECISIONS, ", ".join(PRECISIONS)),
        ("height", meta.height, is_whole(meta.height, 1, MAX_SIDE), pixels),
        ("width", meta.width, is_whole(meta.width, 1, MAX_SIDE), pixels),
        ("mean", meta.mean, _are_numbers(meta.mean, -1e6, 1e6, 3), "three finite numbers"),
        ("std", meta.std, _are_numbers(meta.std, 1e-6, 1e6, 3), "three positive numbers"),
        ("note", method.note, _is_text(method.note, 1000), "printable text of at most 1000 characters"),
        ("head_stride", meta.head_stride, is_whole(meta.head_stride, 1, 2), "1 or 2"),
        ("source", meta.source, _is_text(meta.source, 1000) and meta.source, "the checkpoint's name"),
        ("source_sha256", meta.source_sha256, digits, "64 lower-case hexadecimal digits"),
        ("versions", meta.versions, _are_versions(meta.versions), "version texts by name"),
        ("licence", meta.licence, _is_text(meta.licence, 10_000, newlines=True), "at most 10000 printable characters"),
        ("fit", meta.fit, not meta.fit or _is_fit(meta.fit, meta), "a calibration of the file's method"),
        ("thresholds", meta.thresholds, not meta.thresholds or is_threshold_record(meta.thresholds), "shares above"),
        ("expected", meta.expected, is_expected(meta.expected, len(meta.classes)), "a fit of the classes"),
        ("reference_scores", scores, _are_scores(scores), f"at most {MAX_SCORES} ascending numbers"),
    ):
        if not holds:
            raise InputError(f"{name} is {shorten(value)}, expected {expected}")


def _are_numbers(values: Any, low: float, high: float, count: int) -> bool:
    return isinstance(values, tuple) and len(values) == count and all(is_number(one, low, high) for one in values)


def _are_scores(values: Any) -> bool:
    fits = isinstance(values, tuple) and len(values) <= MAX_SCORES
    return fits and _are_numbers(values, -1e9, 1e9, len(values)) and list(values) == sorted(values)


def _is_text(value: Any, longest: int, *, newlines: bool = False) -> bool:
    """True for text that a terminal and a page can show: it has no control characters or lone surrogates."""
    if not isinstance(value, str) or len(value) > longest:
        return False
    return (value.replace("\n", "") if newlines else value).isprintable()


def _is_fit(fit: Any, meta: GraphMeta) -> bool:
    """True for settings of the file's method, and numbers wherever reports and pages read them."""
    try:
        risk, sets = fit.get("class_risk"), fit["conformal"]
        numbers = [*(sets[key] for key in ("coverage", "lac")), *(risk[key] for key in RISK_KEYS if risk)]
        known = not risk or risk["class"] in meta.classes.names
        texts = [fit[key] for key in ("data", "split", "protocol", "frame_list_hash") if fit.get(key) is not None]
        of_method = settings(method_of_fit(fit)) == settings(meta.method)
    except (AttributeError, KeyError, TypeError, InputError):
        return False
    return (
        of_method and known and all(is_number(one, 0, 1) for one in numbers) and all(_is_text(t, 1000) for t in texts)
    )


def _are_versions(versions: Any) -> bool:
    if not isinstance(versions, dict) or len(versions) > 100:
        return False
    return all(_is_text(text, 200) for entry in versions.items() for text in entry)
