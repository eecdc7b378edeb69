"""Checkpoints: safetensors whose header carries everything needed to use the weights; never pickle."""

import dataclasses
import io
import json
import math
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from core.classes import ClassList
from core.errors import InputError
from core.method import Method, fit_of
from core.model.int8 import is_int8_record, is_proven
from core.system.files import write_atomic
from core.system.json_text import parse_json

FORMAT_VERSION = 1
HEADER_KEY = "steadyseg"
NOVELTY_PREFIX = "novelty."
"""Prefix of tensors that are not weights of the network."""
MAX_HEADER_BYTES = 16 * 2**20
"""A header of ours is a few hundred kB; a file that claims more is refused before anything is allocated."""

MIN_TEMPERATURE, MAX_TEMPERATURE = 1e-3, 1e3
"""Far beyond what a fit gives; outside, logits divided by it leave float32."""
MIN_STD, MAX_MEAN = 1e-6, 1e6
"""Far beyond what pictures of 0..1 have; outside, what a network sees leaves float32 and its labels still look
plausible."""


@dataclass(frozen=True)
class CheckpointMeta:
    """Everything needed to use the weights, and their origin."""

    architecture: str
    """Key of the network builder: unet or smp."""
    options: dict[str, Any]
    """The builder's options."""
    classes: ClassList
    height: int
    """Pixels: frames are resized to this height."""
    width: int
    """Pixels: the width the network was trained and measured at; other aspects keep theirs."""
    mean: tuple[float, float, float]
    """RGB mean of the training images, 0..1."""
    std: tuple[float, float, float]
    """RGB standard deviation of the training images, 0..1."""
    calibration: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Post-hoc calibration by method: its settings, `temperature`, the data of the fit, and conformal thresholds."""
    metrics: dict[str, Any] = field(default_factory=dict)
    """Measured figures by protocol and mode, each with its data, frame list hash and seed."""
    training: dict[str, Any] = field(default_factory=dict)
    """The training configuration, command, hours and machine."""
    novelty: dict[str, Any] = field(default_factory=dict)
    """Statistics of the network's training domain (core/novelty/record.py); their matrices are tensors named
    `NOVELTY_PREFIX`..."""
    int8: dict[str, Any] = field(default_factory=dict)
    """`ranges` of the convolutions (core/model/int8.py), the data of the fit, and figures of (float32, int8)."""
    licence: str = ""
    """Licence note of weights and training data."""
    format_version: int = FORMAT_VERSION

    def fit(self, method: Method) -> dict[str, Any] | None:
        """The calibration that was fitted with this very method (its temperature aside); None: there is none."""
        return fit_of(self.calibration, method)  # type: ignore[return-value]

    def fit_in_use(self, method: Method) -> dict[str, Any]:
        """The calibration in use, or an empty dict. A temperature that follows the frame has thresholds of its own."""
        fit = self.fit(method) or {} if method.calibrated else {}
        if not method.adaptive:
            return fit
        own = fit.get("adaptive", {})
        return {key: value for key, value in fit.items() if key not in ("conformal", "class_risk")} | own

    @property
    def int8_is_proven(self) -> bool:
        """True if `--precision auto` may choose int8."""
        return bool(self.int8) and is_proven(self.int8["accuracy"], self.int8["ece"])

    def in_int8(self) -> "CheckpointMeta":
        """Returns the record of the rounded network: each temperature multiplied by the ratio that was fitted for
        int8."""
        ratio = float(self.int8["temperature_ratio"])
        fits = {key: fit | {"temperature": float(fit["temperature"]) * ratio} for key, fit in self.calibration.items()}
        following = {
            key: fit | {"level": float(fit["level"]) + math.log(ratio)} for key, fit in self.frame_temperatures.items()
        }
        novelty = self.novelty | {"temperatures": following} if following else self.novelty
        return replace(self, calibration=fits, novelty=novelty)

    def method_in_int8(self, method: Method) -> Method:
        """Returns the method of the rounded network: a fitted temperature is multiplied by the same ratio."""
        ratio = float(self.int8["temperature_ratio"])
        return replace(method, temperature=method.temperature * ratio) if method.calibrated else method

    @property
    def frame_temperatures(self) -> dict[str, dict[str, Any]]:
        """Temperatures that follow the statistics of a frame, by method; empty without them."""
        fits = self.novelty.get("temperatures", {})
        return fits if isinstance(fits, dict) and all(map(_is_frame_fit, fits.values())) else {}

    def with_fit(self, method: Method, fit: dict[str, Any]) -> "CheckpointMeta":
        """A copy with the calibration of one more method; it replaces an earlier one of that method."""
        earlier = self.fit(method)
        kept = {key: one for key, one in self.calibration.items() if one is not earlier}
        return replace(self, calibration=kept | {str(method): fit})

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=1, default=str)


def save_checkpoint(path: Path, tensors: Mapping[str, Tensor], meta: CheckpointMeta) -> None:
    """Writes `path` (.safetensors) atomically, then the readable copy of its header beside it (.json)."""
    write_tensors(path, tensors, meta.to_json())
    write_atomic(path.with_suffix(".json"), (meta.to_json() + "\n").encode())


def load_checkpoint(path: Path) -> tuple[dict[str, Tensor], CheckpointMeta]:
    """Reads the tensors and the record of a checkpoint; anything else raises InputError in one line."""
    return parse_checkpoint(read_whole(path), path)


def parse_checkpoint(data: bytes, path: Path) -> tuple[dict[str, Tensor], CheckpointMeta]:
    """Returns the tensors and the record in the bytes of a checkpoint; `path` is for messages."""
    tensors, header = _parse_tensors(data, path)
    meta = parse_meta(header, path)
    _refuse_no_numbers(tensors, path)
    return tensors, meta


def read_meta(path: Path) -> CheckpointMeta:
    """Reads the record alone: cheap, for lists of models."""
    with _opened(path) as file:
        return parse_meta(_header_text(file, path), path)


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
        record["classes"] = ClassList(
            tuple(classes["names"]), tuple(tuple(color) for color in classes["colors"]), classes["void"]
        )
        record["mean"], record["std"] = tuple(map(float, record["mean"])), tuple(map(float, record["std"]))
        meta = CheckpointMeta(**{f.name: record[f.name] for f in fields if f.name in record})
        _check(meta)
        return meta
    except (KeyError, TypeError, ValueError) as error:  # InputError is a ValueError: it gets the file's name here
        raise InputError(f"{path}: the checkpoint's header is malformed ({error})") from error


def _check(meta: CheckpointMeta) -> None:
    """Raises InputError for wrong types and values, which a record from elsewhere may hold."""
    for name, holds in {
        "architecture": isinstance(meta.architecture, str),
        "options": isinstance(meta.options, dict),
        "metrics": isinstance(meta.metrics, dict),
        "training": isinstance(meta.training, dict),
        "novelty": isinstance(meta.novelty, dict),
        "height": isinstance(meta.height, int) and meta.height > 0,
        "width": isinstance(meta.width, int) and meta.width > 0,
        "mean": len(meta.mean) == 3 and all(abs(value) <= MAX_MEAN for value in meta.mean),  # of NaN it is false
        "std": len(meta.std) == 3 and all(MIN_STD <= value <= MAX_MEAN for value in meta.std),
        "calibration": isinstance(meta.calibration, dict) and all(map(_is_fit, meta.calibration.values())),
        "int8": meta.int8 == {} or is_int8_record(meta.int8),
    }.items():
        if not holds:
            raise ValueError(f"{name} is {getattr(meta, name)!r}")


def _is_fit(fit: Any) -> bool:
    """True for a usable temperature, and settings that can be those of a method."""
    temperature = fit.get("temperature") if isinstance(fit, dict) else None
    if not isinstance(temperature, float | int) or isinstance(temperature, bool):
        return False
    return _is_method(fit) and MIN_TEMPERATURE <= temperature <= MAX_TEMPERATURE


def _is_frame_fit(fit: Any) -> bool:
    """True for a usable temperature of the frame, and settings that can be those of a method."""
    level = fit.get("level") if isinstance(fit, dict) else None
    if not isinstance(level, int | float) or isinstance(level, bool):
        return False
    return abs(level) < 100 and _is_method(fit)


def _is_method(fit: Mapping[str, Any]) -> bool:
    """True where all settings of a method are there and have its types."""
    if not fit.keys() >= {"mode", "samples", "tau", "window", "motion"}:
        return False
    numbers = [fit[name] for name in ("tau", "window") if fit[name] is not None]
    mode = fit["mode"]
    return (
        all(isinstance(number, int | float) for number in (fit["samples"], *numbers))
        and isinstance(fit["motion"], bool)
        and isinstance(mode, str)
        and mode.isprintable()
    )


def load_weights(network: torch.nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Strict load: missing, surplus or misshapen tensors raise InputError with the first of them."""
    expected = network.state_dict()
    tensors = without_novelty(tensors)
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


def without_novelty(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of the network alone."""
    return {name: value for name, value in tensors.items() if not name.startswith(NOVELTY_PREFIX)}


def _refuse_no_numbers(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Raises InputError for NaN or infinity. With one NaN among its weights a network gives one label everywhere, with
    an entropy of 0. Minimum and maximum are NaN if any value is, which is the quickest check.
    """
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and tensor.numel():
            ends = torch.aminmax(tensor.half() if tensor.itemsize == 1 else tensor)
            if not all(math.isfinite(end.item()) for end in ends):
                raise InputError(f"{path}: tensor {name} holds NaN or infinite values; fetch or train it again")


def write_tensors(path: Path, tensors: Mapping[str, Tensor], header: str) -> None:
    """Writes the file atomically: after a crash the old or the new one is there, whole."""
    from safetensors.torch import save

    data = save({name: tensor.contiguous() for name, tensor in tensors.items()}, metadata={HEADER_KEY: header})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, data)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], str]:
    """Reads the tensors and the header's text of a safetensors file; hostile or damaged files raise InputError."""
    return _parse_tensors(read_whole(path), path)


def read_whole(path: Path) -> bytes:
    """Reads the bytes of a checkpoint, in one pass; its header is checked before the rest is read."""
    with _opened(path) as file:
        _header_text(file, path)
        file.seek(0)
        return file.read()


def _parse_tensors(data: bytes, path: Path) -> tuple[dict[str, Tensor], str]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    header = _header_text(io.BytesIO(data), path)
    try:
        return load(data), header
    except (SafetensorError, ValueError, OverflowError, KeyError) as error:  # KeyError: a number type torch lacks
        raise InputError(f"{path}: not a whole safetensors file ({error}); fetch or copy it again") from error


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def _header_text(file: BinaryIO, path: Path) -> str:
    """Reads the text of our record from the header of an open safetensors file."""
    start = file.read(8)
    length = struct.unpack("<Q", start)[0] if len(start) == 8 else -1
    size = file.seek(0, io.SEEK_END)
    file.seek(8)
    if not 2 <= length <= MAX_HEADER_BYTES or length > size - 8:
        raise InputError(
            f"{path}: not a safetensors checkpoint (its header claims {length} bytes); pickles (.pt, .pth) are "
            "refused because loading one can run code"
        )
    try:
        header = parse_json(file.read(length))
    except ValueError as error:
        raise InputError(f"{path}: not a safetensors checkpoint (its header is not JSON)") from error
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    text = metadata.get(HEADER_KEY) if isinstance(metadata, dict) else None
    if not isinstance(text, str):
        raise InputError(
            f"{path}: a safetensors file, but not a SteadySeg checkpoint (no {HEADER_KEY!r} in its header)"
        )
    return text
