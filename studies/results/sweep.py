"""One walk over labelled frames that answers every row of a network at once: no pass is computed twice.

Rows get what `steadyseg evaluate` computes for them alone: masks depend on (seed, frame), and the first 5 of 30 passes
are those of a run with 5.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from steadyseg.core.classes import CAMVID, ClassList
from steadyseg.core.dropout import set_dropout_active
from steadyseg.core.evaluation.temperature import UNTEMPERED, BeyondGrid, TemperatureFit, TemperatureScan, grid_tensor
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.motion import MotionEstimator
from steadyseg.core.novelty.statistics import subsample
from steadyseg.core.prediction import Prediction, mean_prediction
from steadyseg.core.seeds import mix_seed
from steadyseg.core.segmenter import Continuity
from steadyseg.seg.calibrate import STRIDE, ConformalCheck, ConformalFit
from steadyseg.seg.evaluate import FrameMetrics
from steadyseg.studies.results.methods import Memory, Method, Sampling

Temperature = float | Literal["grid", "thin grid"]
"""A grid is all its temperatures at once; the thin one has every second row and column, for what works pixel by
pixel."""


class Reading(NamedTuple):
    """Conversion of logits to probabilities."""

    temperature: Temperature
    undone: bool = False


RISK_CLASS = CAMVID.names.index("Pedestrian")
"""The class whose misses are bounded."""


@dataclass(frozen=True)
class Subject:
    """The networks of a row: one, or the members of an ensemble."""

    networks: list[Any]
    preprocess: Callable[[Tensor], Tensor]
    classes: ClassList
    class_weights: Tensor | None = None
    """(K,) of the loss that it was trained with; None: it had none."""
    precision: str = "fp32"
    """bf16: autocast of the networks, as they were trained; probabilities and means of them stay in single
    precision."""
    head_stride: int = 1
    """Ratio of the frame's size to that of its logits."""


@dataclass
class Swept:
    """Results of a sweep, by the names of the methods."""

    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Metrics of each measured method."""
    temperatures: dict[str, TemperatureFit] = field(default_factory=dict)
    """The temperature of each scanned method if it lies in the grid: with dropout off, a network trained with much
    dropout may need more."""
    sets: dict[str, ConformalFit] = field(default_factory=dict)
    """Scores of the true classes at temperature 1, of each scanned one."""


def sweep(
    subject: Subject,
    frames: Iterable[Frame],
    measured: Mapping[str, Method],
    scanned: Mapping[str, Method],
    seed: int = 0,
    *,
    checks: Mapping[str, ConformalCheck] | None = None,
    sequence: Callable[[int], str] = lambda place: "",
) -> Swept:
    """Walks once over the frames; `checks` are of measured methods, `sequence` names the recording of the place-th
    frame."""
    classes = subject.classes
    memories = {name: Memory(method.smoothing) for name, method in (*measured.items(), *scanned.items())}
    live = {name: FrameMetrics.of(classes) for name in measured}
    scans = {name: TemperatureScan(len(classes), classes.void) for name in scanned}
    sets = {name: ConformalFit(classes.void_id, RISK_CLASS) for name in scanned}
    wanted: dict[Sampling, set[Reading]] = {}
    for method in measured.values():
        wanted.setdefault(method.sampling, set()).add(reading_of(method))
    for method in scanned.values():
        wanted.setdefault(method.sampling, set()).add(grid_for(method))
    follows = any(method.smoothing and method.smoothing.motion for method in (*measured.values(), *scanned.values()))

    continuity, estimate_motion = Continuity(), MotionEstimator()
    for place, frame in enumerate(frames):
        gap = continuity.gap_before(frame)
        height, width = (-(-length // subject.head_stride) for length in frame.image.shape[:2])
        motion = estimate_motion(frame.image, (height, width), gap) if follows else None
        with torch.inference_mode():
            with torch.autocast("cpu", torch.bfloat16, enabled=subject.precision == "bf16"):
                predictions = predict_frame(subject, frame, wanted, mix_seed(seed, place))
            for name, method in measured.items():
                seen = memories[name].smooth(predictions[method.sampling, reading_of(method)], gap, motion)
                if frame.label is not None:
                    live[name].update(frame, _as_maps(seen))
                    if checks and name in checks:
                        checks[name].update(frame, _as_maps(seen), sequence(place))
            for name, method in scanned.items():
                seen = memories[name].smooth(predictions[method.sampling, grid_for(method)], gap, motion)
                if frame.label is not None:
                    probs = seen.probs if grid_for(method).temperature == "thin grid" else subsample(seen.probs, STRIDE)
                    label = subsample(torch.from_numpy(frame.label), STRIDE)
                    scans[name].update(probs, label)
                    sets[name].add(probs[UNTEMPERED], label)
    rows = {name: metrics.result() for name, metrics in live.items()}
    for name, check in (checks or {}).items():
        rows[name]["conformal"] = check.result()
    temperatures = {}
    for name, scan in scans.items():
        with suppress(BeyondGrid):
            temperatures[name] = scan.fit()
    return Swept(rows, temperatures, sets)


def reading_of(method: Method) -> Reading:
    return Reading(method.temperature, method.undone)


def grid_for(method: Method) -> Reading:
    """The thin grid, except for a mean that follows motion, which needs the neighbours of a pixel too."""
    return Reading("grid" if method.smoothing and method.smoothing.motion else "thin grid", method.undone)


def predict_frame(
    subject: Subject, frame: Frame, wanted: Mapping[Sampling, set[Reading]], seed: int
) -> dict[tuple[Sampling, Reading], Prediction]:
    """Predicts a frame by every sampling, in every reading that is wanted of it."""
    batch = subject.preprocess(torch.from_numpy(frame.image)[None])
    found: dict[tuple[Sampling, Reading], Prediction] = {}

    def read(logits: Tensor, reading: Reading) -> Prediction:
        return read_logits(logits, reading, subject.class_weights)

    first = subject.networks[0]
    by_kind = {kind: [one for one in wanted if one.kind == kind] for kind in ("one", "all", "member", "dropout")}
    whole = by_kind["all"]
    shared = prefix(first, batch) if by_kind["dropout"] else None
    if by_kind["one"] or whole or by_kind["member"]:
        set_dropout_active(first, False)
        torch.manual_seed(seed)
        drawn = int(torch.randint(len(subject.networks), ())) if by_kind["member"] else 0
        used = enumerate(subject.networks) if whole else [(drawn, subject.networks[drawn])]
        every = {place: widen(one.suffix(shared) if shared else one(batch)) for place, one in used}
        for sampling in by_kind["one"]:
            found |= {(sampling, t): read(every[0], t) for t in wanted[sampling]}
        for sampling in by_kind["member"]:
            found |= {(sampling, t): read(every[drawn], t) for t in wanted[sampling]}
        for sampling in whole:
            found |= {
                (sampling, t): mean_prediction([read(logits, t) for logits in every.values()]) for t in wanted[sampling]
            }
    if by_kind["dropout"]:
        found |= sample_dropout(first, shared, {one: wanted[one] for one in by_kind["dropout"]}, seed, read)
    return found


def prefix(network: Any, batch: Tensor) -> Any:
    """Output before the first dropout, which does not depend on whether dropout is on."""
    set_dropout_active(network, True)
    return network.prefix(batch)


def sample_dropout(
    network: Any,
    shared: Any,
    wanted: Mapping[Sampling, set[Reading]],
    seed: int,
    read: Callable[[Tensor, Reading], Prediction],
) -> dict[tuple[Sampling, Reading], Prediction]:
    """Running means over the passes, kept where a sampling ends; `shared` is what is before the first dropout."""
    set_dropout_active(network, True)
    torch.manual_seed(seed)
    means: dict[Reading, Prediction] = {}
    found: dict[tuple[Sampling, Reading], Prediction] = {}
    for count in range(1, max(sampling.samples for sampling in wanted) + 1):
        logits = widen(network.suffix(shared))
        for reading in set().union(*(wanted[sampling] for sampling in wanted if sampling.samples >= count)):
            now = read(logits, reading)
            means[reading] = now if count == 1 else means[reading].blend(now, 1.0 / count)
        for sampling in wanted:
            if sampling.samples == count:
                found |= {(sampling, reading): means[reading] for reading in wanted[sampling]}
    return found


def widen(logits: Tensor) -> Tensor:
    """Logits in single precision and contiguous: in channels_last a softmax takes 2.5 times as long."""
    return logits.float().contiguous()


def read_logits(logits: Tensor, reading: Reading, class_weights: Tensor | None) -> Prediction:
    """(1, K, h, w) -> probabilities, all temperatures of a grid as a batch."""
    if reading.undone:
        assert class_weights is not None
        logits = without_class_weights(logits, class_weights)
    temperature = reading.temperature
    if temperature == "thin grid":
        return probabilities(subsample(logits, STRIDE) / grid_tensor(logits.device))
    if temperature == "grid":
        return probabilities(logits / grid_tensor(logits.device))
    return probabilities(logits / temperature)


def probabilities(logits: Tensor) -> Prediction:
    """A prediction without the members' entropies, which no row reads and which cost more than the softmax."""
    probs = torch.softmax(logits, dim=1)
    return Prediction(probs, probs.new_zeros(()).expand(probs.shape[:1] + probs.shape[2:]))


def _as_maps(seen: Prediction) -> Maps:
    none = torch.empty(0, dtype=torch.uint8).numpy()
    return Maps(none, none, none, none, seen.probs[0].numpy())


def without_class_weights(logits: Tensor, weights: Tensor) -> Tensor:
    """(B, K, ...) logits of a network trained with (K,) class weights -> the logits without the effect of the
    weights."""
    return logits - weights.log().view(1, -1, *[1] * (logits.ndim - 2)).to(logits)
