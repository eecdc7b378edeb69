"""A method: the passes of a frame, the mean over time and the temperature.

`MethodOptions` are the flags of every command that runs a network. `Method` is the method that runs, and the method in
a record. No torch here: the command line reads these to print its help.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, Self, TypedDict, get_args

from steadyseg.core.errors import InputError, shorten
from steadyseg.core.options import is_number, is_whole

ModeName = Literal["dnn", "vq-dnn", "bnn", "vq-bnn"]
AverageName = Literal["arithmetic", "geometric"]
MODE_NAMES: tuple[ModeName, ...] = get_args(ModeName)
AVERAGES: tuple[AverageName, ...] = get_args(AverageName)

PUBLISHED_TAU, MOTION_TAU = 1.25, 8.0
"""Frames: published (VQ-BNN, arXiv 1907.05911), and kept for the geometric mean; an arithmetic mean that follows motion
remembers longer (docs/records/results)."""
BNN_SAMPLES = 30
"""Dropout passes of mode bnn (published on CamVid)."""
MAX_SAMPLES, MAX_TAU = 10_000, 1e6
"""Limits of passes and of frames. A larger value is a slip, or a record that asks for all memory."""
MIN_TEMPERATURE, MAX_TEMPERATURE = 1e-3, 1e3
"""Far beyond what a fit gives. Beyond these limits, divided logits leave the range of float32."""
SETTINGS = ("mode", "samples", "tau", "motion", "average")
"""The settings that a fitted temperature belongs to."""


MODE_WORDS = {"dnn": "single frame", "vq-dnn": "smoothed", "bnn": "MC dropout", "vq-bnn": "MC dropout smoothed"}


def mode_title(method: object) -> str:
    """A mode or method in words, with its name."""
    return f"{MODE_WORDS[str(method).replace(',', ' ').split()[0]]} ({method})".replace("tau", "decay time tau")


def is_temporal(mode: str) -> bool:
    """True if the mode averages over the recent frames."""
    return mode.startswith("vq-")


GATE_FLOOR = 0.3
"""Share of the past that stays where mean and frame predict different classes (chosen on drawn streets,
docs/records/gating)."""


SMALLEST_PROB = 1e-6
"""Probabilities in a geometric mean are at least this, so that no frame excludes a class for ever."""


def draws_dropout(mode: str) -> bool:
    """True if the mode draws dropout masks."""
    return mode.endswith("bnn")


def no_dropout(mode: str) -> InputError:
    """The error of a mode that draws dropout masks, for a network without dropout."""
    other = mode.replace("bnn", "dnn")
    return InputError(f"mode {mode} draws dropout masks and this network has no dropout; use mode {other}")


@dataclass(frozen=True)
class Method:
    """A method with every setting decided; InputError for invalid values, from a record too."""

    mode: ModeName
    samples: int = 1
    """Passes per frame."""
    tau: float | None = None
    """Decay time of the temporal mean in source frames; None without a temporal mean."""
    motion: bool = False
    """True if the temporal mean is warped along the motion between frames."""
    average: AverageName = "arithmetic"
    """The temporal mean of probabilities, as published, or of their logarithms."""
    temperature: float = 1.0
    """Divisor of the logits."""
    calibrated: bool = False
    """True if the temperature was fitted for this very method."""
    note: str = field(default="", compare=False)
    """Reason why no fitted temperature is in use; else empty."""

    def __post_init__(self) -> None:
        if self.mode not in MODE_NAMES:
            raise InputError(f"unknown mode {shorten(self.mode)}; choose from {', '.join(MODE_NAMES)}")
        draws, temporal = draws_dropout(self.mode), is_temporal(self.mode)
        samples = f"1 or more, at most {MAX_SAMPLES}" if draws else f"1 in mode {self.mode}, which has no dropout"
        tau = f"a positive number of frames, at most {MAX_TAU:g}" if temporal else f"none in mode {self.mode}"
        motion = "on or off" if temporal else f"off in mode {self.mode}, which has no memory; use vq-{self.mode}"
        average = "arithmetic or geometric" if temporal else f"arithmetic in mode {self.mode}, which has no memory"
        average = f"arithmetic in mode {self.mode}: passes of MC dropout are samples" if draws else average
        temperature = f"a positive number, {MIN_TEMPERATURE:g} to {MAX_TEMPERATURE:g}"
        for name, expected, holds in (
            ("samples", samples, is_whole(self.samples, 1, MAX_SAMPLES if draws else 1)),
            ("tau", tau, is_number(self.tau, 1e-6, MAX_TAU) if temporal else self.tau is None),
            ("motion", motion, self.motion is False or (self.motion is True and temporal)),
            ("average", average, self.average in AVERAGES[: 2 if temporal and not draws else 1]),
            ("temperature", temperature, is_number(self.temperature, MIN_TEMPERATURE, MAX_TEMPERATURE)),
            ("calibrated", "true or false", isinstance(self.calibrated, bool)),
        ):
            if not holds:
                raise InputError(f"{name} must be {expected}, got {shorten(getattr(self, name))}")

    @property
    def gated(self) -> bool:
        """True if the past weighs less where it predicts another class than the new frame. False with dropout: masks
        differ from frame to frame, and the mean is to average over them. False for a geometric mean, whose memory is
        short."""
        return self.motion and not draws_dropout(self.mode) and self.average == "arithmetic"

    def __str__(self) -> str:
        """Everything but the temperature: `vq-bnn x5, tau 8, motion`."""
        parts = [f"{self.mode} x{self.samples}" if self.mode == "bnn" or self.samples > 1 else self.mode]
        parts += [] if self.tau is None else [f"tau {self.tau:g}"]
        parts += ["motion"] if self.motion else []
        return ", ".join(parts + (["geometric"] if self.average == "geometric" else []))


def settings(method: Method) -> dict[str, Any]:
    """`SETTINGS` of a method, as a record holds them."""
    return {name: getattr(method, name) for name in SETTINGS}


def method_of_fit(fit: Mapping[str, Any]) -> Method:
    """The method that a calibration record was fitted with; InputError where it names no method."""
    given = {"average": "arithmetic", **fit}  # records of versions before 0.3 lack it
    if missing := [name for name in SETTINGS if name not in given]:
        raise InputError(f"a fit lacks {missing[0]}")
    return Method(**{name: given[name] for name in SETTINGS})


class Calibrated(Protocol):
    """The fitted temperatures in a checkpoint's record."""

    @property
    def calibration(self) -> Mapping[str, Mapping[str, Any]]: ...

    def fit(self, method: Method) -> Mapping[str, Any] | None:
        """The calibration that was fitted for this method, or None."""


@dataclass(frozen=True)
class PassOptions:
    """Passes and temporal mean of a method; settings that are not given follow from the model."""

    mode: ModeName | None = None
    """dnn: single frame. bnn: MC dropout, the mean of forward passes. vq-dnn and vq-bnn: smoothed over the recent
    frames. Mode auto: vq-dnn for video, dnn for single images, or the mode of an .onnx file."""
    samples: int | None = None
    """Forward passes with dropout per frame (default 30 for bnn, 1 for vq-bnn; for a classifier 50)."""
    tau: float | None = None
    """Decay time of the temporal mean in source frames (default 1.25, as published; 8 for an arithmetic mean that
    follows motion)."""
    motion: bool | None = None
    """Motion compensation: the temporal mean is warped along the optical flow between frames; auto: on."""
    average: AverageName | None = None
    """The temporal mean: arithmetic, of probabilities, as published, or geometric, of their logarithms. Auto: geometric
    where it follows motion without dropout, unless the network was calibrated for an arithmetic mean alone."""


@dataclass(frozen=True)
class MethodOptions(PassOptions):
    """Settings of a method; those that are not given follow from the model."""

    calibrated: bool | None = None
    """Use the temperature that was fitted for this very method; auto: if there is one."""

    def or_default(self, **defaults: Any) -> Self:
        """A copy with these values for settings that are not given."""
        return replace(self, **{name: value for name, value in defaults.items() if getattr(self, name) is None})

    def require(self, made: Method, name: str) -> None:
        """Raises InputError for a setting that differs from the method `made` of the graph file `name`."""
        for flag, asked in vars(self).items():
            has = getattr(made, flag)
            if asked is not None and asked != has:
                words = {True: "on", False: "off"}.get(asked, asked) if isinstance(asked, bool) else asked
                again = "" if flag == "calibrated" else f": steadyseg export --{flag} {words}"
                raise InputError(
                    f"{name}: was made for {flag} {has}, got {asked}; omit {flag} or export it again{again}"
                )

    def resolve(self, meta: Calibrated | None = None) -> Method:
        """The method that will run, with its fitted temperature. InputError for settings that contradict each other."""
        method = self._without_temperature(self.mode or "vq-dnn")
        if self.average is None and meta is not None and meta.fit(method) is None:
            older = replace(self, average="arithmetic")._without_temperature(method.mode)
            method = older if meta.fit(older) else method
        return self._with_temperature(method, meta)

    def _without_temperature(self, mode: ModeName) -> Method:
        samples = self.samples if self.samples is not None else BNN_SAMPLES if mode == "bnn" else 1
        if not is_temporal(mode):
            return Method(mode, samples, motion=bool(self.motion), average=self.average or "arithmetic")
        motion = self.motion is None or self.motion
        average = self.average or default_average(mode, motion)
        tau = self.tau if self.tau is not None else default_tau(motion, average)
        return Method(mode, samples, tau, motion, average)

    def _with_temperature(self, method: Method, meta: Calibrated | None) -> Method:
        if self.calibrated is False or meta is None:
            return replace(method, note="calibration is switched off" if meta else "")
        fit = meta.fit(method)
        if fit is not None:
            return replace(method, temperature=float(fit["temperature"]), calibrated=True)
        fitted = "; ".join(str(method_of_fit(fit)) for fit in meta.calibration.values())
        note = f"no temperature was fitted for {method}" + (f" (there is one for: {fitted})" if fitted else "")
        if self.calibrated:
            raise InputError(f"{note}; fit one with `steadyseg calibrate` or omit calibrated")
        return replace(method, note=note)


class MethodKeywords(TypedDict, total=False):
    """The fields of `MethodOptions` as keywords of a function."""

    mode: ModeName | None
    samples: int | None
    tau: float | None
    motion: bool | None
    average: AverageName | None
    calibrated: bool | None


def default_average(mode: str, motion: bool) -> AverageName:
    """The default temporal mean of a mode, with or without motion compensation."""
    return "geometric" if motion and not draws_dropout(mode) else "arithmetic"


def default_tau(motion: bool, average: str) -> float:
    """The default decay time with or without motion compensation."""
    return MOTION_TAU if motion and average == "arithmetic" else PUBLISHED_TAU
