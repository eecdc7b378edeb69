"""Checkpoints: safetensors files whose header carries everything that is needed to use the weights."""

import dataclasses
import hashlib
import io
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError, shorten
from steadyseg.core.method import Method, method_of_fit, settings
from steadyseg.core.model.int8_record import is_int8_record, is_proven
from steadyseg.core.model.tensor_file import (
    PREFIXES,
    StoredTensors,
    header_text,
    opened,
    read_header,
    read_whole,
    weights_alone,
    write_tensors,
)
from steadyseg.core.model.thresholds import is_threshold_record
from steadyseg.core.options import MAX_NETWORK_PIXELS, is_number, require_types
from steadyseg.core.system.files import write_atomic
from steadyseg.core.system.json_text import parse_json

if TYPE_CHECKING:
    from torch import Tensor, nn

FORMAT_VERSION = 1
NAME = re.compile(r"[A-Za-z0-9_.-]{1,99}\.safetensors")
"""Name of a file in the checkpoint's folder that its record may give; every system takes such names."""
SHA256 = re.compile("[0-9a-f]{64}")
MIN_STD, MAX_MEAN = 1e-6, 1e6
"""Far beyond pictures of 0..1; outside, the network's input leaves float32 and its labels still look plausible."""


@dataclass(frozen=True)
class CheckpointMeta:
    """The origin of the weights, and everything needed to use them."""

    architecture: str
    """Key of the network builder: unet, segnet or smp."""
    options: dict[str, Any]
    """The builder's options."""
    classes: ClassList
    height: int
    """Height in pixels that frames are resized to."""
    width: int
    """Width in pixels at which the network was trained and measured; frames of another aspect get another width."""
    mean: tuple[float, float, float]
    """RGB mean of the training images, 0..1."""
    std: tuple[float, float, float]
    """RGB standard deviation of the training images, 0..1."""
    calibration: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Post-hoc calibration by method: its settings, `temperature`, the data of the fit, and conformal thresholds."""
    metrics: dict[str, Any] = field(default_factory=dict)
    """Measured metrics by protocol and mode, each with its data, frame list hash and seed."""
    training: dict[str, Any] = field(default_factory=dict)
    """The training configuration, command, hours and machine."""
    familiarity: dict[str, Any] = field(default_factory=dict)
    """Statistics of the network's training domain (core/familiarity/record.py); their matrices are tensors named
    `FAMILIARITY_PREFIX`..."""
    int8: dict[str, Any] = field(default_factory=dict)
    """`ranges` of the convolutions (core/model/int8.py), the data of the fit, and metrics of (float32, int8). The
    corrections of the biases are tensors named `INT8_PREFIX`..."""
    thresholds: dict[str, Any] = field(default_factory=dict)
    """Pixels that remain above `thresholds` of confidence with one method, by set of frames (core/model/thresholds.py,
    docs/records/guide)."""
    weights: dict[str, str] = field(default_factory=dict)
    """Only if another checkpoint in the folder holds the network's tensors: the name of its `file`, their `digest`."""
    licence: str = ""
    """Licence note of weights and training data."""
    format_version: int = FORMAT_VERSION

    def fit(self, method: Method) -> dict[str, Any] | None:
        """The calibration that was fitted for this method, whose temperature does not matter, or None."""
        asked = settings(method)
        return next((fit for fit in self.calibration.values() if settings(method_of_fit(fit)) == asked), None)

    def fit_in_use(self, method: Method) -> dict[str, Any]:
        """The calibration in use, or an empty dict."""
        return self.fit(method) or {} if method.calibrated else {}

    @property
    def int8_lacks_familiarity(self) -> bool:
        """True if fp32 knows what is familiar, and int8 has no scale of its own for it."""
        return bool(self.familiarity) and not self.familiarity.get("int8")

    @property
    def int8_is_proven(self) -> bool:
        """True if `--precision auto` may choose int8: its loss is small, and it knows what is familiar if fp32 does."""
        is_small = bool(self.int8) and is_proven(self.int8["accuracy"], self.int8["ece"])
        return is_small and not self.int8_lacks_familiarity

    def method_in_int8(self, method: Method) -> Method:
        """Returns the method of the rounded network: int8 multiplies a fitted temperature by its fitted ratio."""
        ratio = float(self.int8["temperature_ratio"])
        return replace(method, temperature=method.temperature * ratio) if method.calibrated else method

    def with_fit(self, method: Method, fit: dict[str, Any]) -> "CheckpointMeta":
        """A copy with the calibration of one more method; it replaces the method's earlier calibration."""
        earlier = self.fit(method)
        kept = {key: one for key, one in self.calibration.items() if one is not earlier}
        return replace(self, calibration=kept | {str(method): fit})

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=1, default=str)


def save_checkpoint(path: Path, tensors: "Mapping[str, Tensor]", meta: CheckpointMeta) -> None:
    """Writes `path` (.safetensors) atomically, then the readable copy of its header beside it (.json). Weights that the
    record's `weights` names are left out where they lie beside `path`."""
    if meta.weights and held_beside(path, meta, weights := weights_alone(tensors)):
        tensors = {name: tensor for name, tensor in tensors.items() if name not in weights}
    else:
        meta = replace(meta, weights={})
    write_tensors(path, tensors, meta.to_json())
    write_atomic(path.with_suffix(".json"), (meta.to_json() + "\n").encode())


def load_checkpoint(path: Path) -> "tuple[dict[str, Tensor], CheckpointMeta]":
    """Reads the tensors and the record of a checkpoint; anything else raises InputError in one line."""
    tensors, meta = parse_checkpoint(read_whole(path), path)
    return dict(tensors), meta


def parse_checkpoint(data: bytes, path: Path) -> tuple[StoredTensors, CheckpointMeta]:
    """Returns the tensors and the record in the bytes of a checkpoint; `path` is for messages."""
    meta = parse_meta(header_text(io.BytesIO(data), path), path)
    return StoredTensors(data, path, _weights_beside(path, meta) if meta.weights else None), meta


def _weights_beside(path: Path, meta: CheckpointMeta) -> StoredTensors:
    found = StoredTensors(data := read_whole(file := file_of_weights(path, meta)), file)
    if digest_of_weights(data) != meta.weights["digest"]:
        raise _needs_weights(path, meta)
    return found


def _needs_weights(path: Path, meta: CheckpointMeta) -> InputError:
    file, digest = meta.weights["file"], meta.weights["digest"]
    return InputError(f"{path}: needs {file} with the weights {digest[:12]} beside it; copy both files together")


def held_beside(path: Path, meta: CheckpointMeta, weights: "Mapping[str, Tensor]") -> bool:
    """True if the file that the record's `weights` names is another one than `path` and holds these tensors."""
    try:
        found = weights_alone(_weights_beside(path, meta))
    except InputError:
        return False
    return found.keys() == weights.keys() and all(found[name].equal(weights[name]) for name in weights)


def file_of_weights(path: Path, meta: CheckpointMeta) -> Path:
    """The file with the network's tensors: the checkpoint itself, or another one beside it that its record names."""
    file = path.with_name(meta.weights["file"]) if meta.weights else path
    if meta.weights and (file == path or not file.is_file()):
        raise _needs_weights(path, meta)
    return file


def digest_of_weights(data: bytes) -> str:
    """SHA-256 of the network's tensors in a checkpoint's bytes: their names, types, shapes and numbers."""
    start = 8 + int.from_bytes(data[:8], "little")
    entries = weights_alone(parse_json(data[8:start]))
    entries.pop("__metadata__", None)
    total = hashlib.sha256()
    for name, entry in sorted(entries.items()):
        begin, end = entry["data_offsets"]
        total.update(json.dumps([name, entry["dtype"], entry["shape"]]).encode() + data[start + begin : start + end])
    return total.hexdigest()


def read_meta(path: Path) -> CheckpointMeta:
    """Reads the record alone: cheap, for lists of models."""
    with opened(path) as file:
        return parse_meta(header_text(file, path), path)


def count_parameters(path: Path) -> int:
    """Counts the trained numbers by a checkpoint's header: no statistics, and no corrections of int8."""
    path = file_of_weights(path, read_meta(path))
    with opened(path) as file:
        header = read_header(file, path)
    buffers = ("running_mean", "running_var", "num_batches_tracked")
    return sum(
        math.prod(tensor["shape"])
        for name, tensor in header.items()
        if not name.startswith((*PREFIXES, "__")) and not name.endswith(buffers)
    )


def parse_meta(text: str, path: Path) -> CheckpointMeta:
    """The JSON text of a header -> CheckpointMeta; InputError names the missing entry."""
    try:
        record = parse_json(text)
    except ValueError as error:
        raise InputError(f"{path}: the checkpoint's header is not JSON ({error})") from error
    if not isinstance(record, dict):
        raise InputError(f"{path}: the checkpoint's header is {type(record).__name__}, expected a JSON object")
    version = record.get("format_version")
    if version != FORMAT_VERSION:
        raise InputError(
            f"{path}: checkpoint format {version!r}, this version reads {FORMAT_VERSION}; use the release that wrote it"
        )
    fields = dataclasses.fields(CheckpointMeta)
    required = [f.name for f in fields if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING]
    missing = [name for name in required if name not in record]
    if missing:
        raise InputError(f"{path}: the checkpoint's header lacks {', '.join(missing)}; it cannot be used without")
    try:
        classes = record["classes"]
        record["classes"] = ClassList.of_record(classes["names"], classes["colors"], classes["void"])
        record["mean"], record["std"] = tuple(map(float, record["mean"])), tuple(map(float, record["std"]))
        record.setdefault("familiarity", record.get("novelty", {}))  # its name before 0.3
        meta = CheckpointMeta(**{f.name: record[f.name] for f in fields if f.name in record})
        _check(meta)
        return meta
    except (KeyError, OverflowError, TypeError, ValueError) as error:  # InputError, too, gets the file's name here
        raise InputError(f"{path}: the checkpoint's header is malformed ({error})") from error


def _check(meta: CheckpointMeta) -> None:
    """Raises InputError for wrong types, values and sizes, which a record from elsewhere may hold."""
    require_types(meta, "{}")
    if not (meta.height > 0 and meta.width > 0 and meta.height * meta.width <= MAX_NETWORK_PIXELS):
        raise InputError(
            f"pictures of {meta.width}x{meta.height} pixels; expected 1 to {MAX_NETWORK_PIXELS} pixels in all"
        )
    if not all(is_number(value, -MAX_MEAN, MAX_MEAN) for value in meta.mean):
        raise InputError(f"mean is {meta.mean}")
    if not all(is_number(value, MIN_STD, MAX_MEAN) for value in meta.std):
        raise InputError(f"std is {meta.std}")
    file, digest = meta.weights.get("file", ""), meta.weights.get("digest", "")
    if meta.weights and not (len(meta.weights) == 2 and NAME.fullmatch(file) and SHA256.fullmatch(digest)):
        raise InputError(
            f"weights is {shorten(meta.weights)}, expected the name of a file beside this one and the SHA-256 of its "
            "tensors"
        )
    if meta.int8 and not is_int8_record(meta.int8):
        raise InputError(f"int8 is {shorten(meta.int8)}")
    if meta.thresholds and not is_threshold_record(meta.thresholds):
        raise InputError(f"thresholds is {shorten(meta.thresholds)}")
    for name, fit in meta.calibration.items():
        try:
            replace(method_of_fit(fit), temperature=fit.get("temperature", math.nan))
        except InputError as error:
            raise InputError(f"calibration of {shorten(name)}: {error}") from error


def load_weights(network: "nn.Module", tensors: "Mapping[str, Tensor]", path: Path) -> None:
    """Strict load: missing, surplus or misshapen tensors raise InputError with the first of them."""
    expected = network.state_dict()
    tensors = weights_alone(tensors)
    for problem, names in (
        ("lacks", expected.keys() - tensors.keys()),
        ("has an unknown", tensors.keys() - expected.keys()),
    ):
        if names:
            raise InputError(f"{path}: the checkpoint {problem} tensor {sorted(names)[0]} ({len(names)} in all)")
    for name, tensor in expected.items():
        if tensors[name].shape != tensor.shape:
            raise InputError(
                f"{path}: tensor {name} is {tuple(tensors[name].shape)}, the architecture needs {tuple(tensor.shape)}"
            )
    network.load_state_dict(dict(tensors))  # copies into the network's own number format
