"""The familiarity statistics in a checkpoint's record; `core/familiarity/stored.py` builds the head. Reading a record
needs no torch."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from steadyseg.core.errors import InputError
from steadyseg.core.expected import ExpectedAccuracy, is_expected, read_expected
from steadyseg.core.method import Method, draws_dropout
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.options import is_number
from steadyseg.core.reference import MIN_FRAMES, ReferenceScores, binomial_interval

if TYPE_CHECKING:
    from torch import Tensor

LOGIT_STATISTICS = ("entropy", "lead", "lead_spread")
"""The last columns of a frame's statistics, behind a column for each stage."""
MAX_STAGES, MAX_STEP, MAX_SCORES = 8, 64, 10_000
MAX_STATISTIC = 1e9
OTHER_SCALES = "dropout", "int8", "int8_dropout"
"""Scales of familiarity that a record may have beside fp32's."""


@dataclass(frozen=True)
class Scale:
    """Statistics of held-out frames in a record."""

    mean: tuple[float, ...]
    """Mean of each statistic over the frames."""
    deviation: tuple[float, ...]
    energy_median: float
    """Median energy over the pixels of the frames."""
    energy_rare: float
    """99th percentile of the energy over the same pixels."""
    scores: tuple[float, ...]
    """Scores of the frames, ascending."""

    @classmethod
    def of(cls, statistics: "Tensor", energies: "Tensor", weights: "Tensor") -> Self:
        """Computes the scale from frames on which no mean or covariance was fitted.

        Args:
            statistics: (N, S), a row for each frame.
            energies: (M,) of their pixels.
            weights: (S,) of the statistics in the score.
        """
        mean, deviation = statistics.mean(0), statistics.std(0).clamp_min(1e-6)
        median, rare = (round(float(np.quantile(energies.double().numpy(), share)), 6) for share in (0.5, 0.99))
        scores = ((statistics - mean) / deviation) @ weights
        return cls(
            rounded(mean), rounded(deviation), median, rare, tuple(sorted(round(one, 6) for one in scores.tolist()))
        )


def rounded(values: "Tensor") -> tuple[float, ...]:
    """Returns the numbers rounded as in a record."""
    return tuple(round(one, 8) for one in values.tolist())


SCALE = tuple(one.name for one in fields(Scale))
"""The fields of a record that a `Scale` gives."""


@dataclass(frozen=True)
class FamiliarityRecord:
    """The fit of `calibrate --familiarity`, with the fields of its `Scale`."""

    stages: tuple[str, ...]
    """Stages whose mean features are compared with training frames."""
    steps: tuple[int, ...]
    """Step between the used rows and columns of each stage."""
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    weights: tuple[float, ...]
    """Weights of the standardised statistics in the score."""
    energy_median: float
    energy_rare: float
    scores: tuple[float, ...]
    about: dict[str, Any]
    """Data of the statistics, their shrinkage, and the interval of the share that is novel."""
    dropout: dict[str, Any] = field(default_factory=dict)
    """`SCALE` of passes with dropout masks, which change the statistics. If a scale is empty, such passes have no
    familiarity."""
    int8: dict[str, Any] = field(default_factory=dict)
    """`SCALE` of the network in int8, without masks."""
    int8_dropout: dict[str, Any] = field(default_factory=dict)
    """`SCALE` of the network in int8, with masks."""
    expected: dict[str, Any] = field(default_factory=dict)
    """The `ExpectedAccuracy` of frames; empty for a classifier, and in records of versions before 0.3."""

    @classmethod
    def of(
        cls,
        stages: tuple[str, ...],
        steps: tuple[int, ...],
        scale: Scale,
        weights: "Tensor",
        about: Mapping[str, Any],
        others: Mapping[str, Scale],
        expected: ExpectedAccuracy | None = None,
    ) -> Self:
        """The record of a fit, with the number of novel held-out frames. `weights` (S,): of the statistics in the
        score. `others`: by `OTHER_SCALES`."""
        count, novel = len(scale.scores), sum(map(ReferenceScores(scale.scores).is_novel, scale.scores))
        interval = [round(end, 4) for end in binomial_interval(novel, count)]
        counts = {"held_out_pictures": count, "novel": novel, "novel_interval": interval}
        scales: dict[str, Any] = {name: asdict(one) for name, one in others.items()}
        return cls(
            stages=stages,
            steps=steps,
            weights=rounded(weights),
            **asdict(scale),
            about={**about, **counts},
            **scales,
            expected=expected.record() if expected else {},
        )

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> "FamiliarityRecord":
        """Reads and checks the values of a record from anywhere; InputError for what cannot be used."""
        try:
            optional = (*OTHER_SCALES, "expected")
            given = [name for name in cls.__dataclass_fields__ if name in values or name not in optional]
            record = cls(**{name: _tuple(values[name]) for name in given})
            record._check()
            for scale in filter(None, map(record.scale_of, OTHER_SCALES)):
                scale._check()
            read_expected(record.expected)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"the record of familiarity is malformed ({error}); calibrate the checkpoint again"
            ) from error
        return record

    def scale_of(self, other: str) -> "FamiliarityRecord | None":
        """The record with one of the `OTHER_SCALES` instead of its own; None where it was not fitted."""
        scale = getattr(self, other)
        return replace(self, **{name: _tuple(scale[name]) for name in SCALE}) if scale else None

    def reference(self) -> ReferenceScores:
        """The scores of held-out frames, and what they say of the accuracy."""
        return ReferenceScores(self.scores, str(self.about.get("data", "")), read_expected(self.expected))

    def _check(self) -> None:
        columns = len(self.stages) + len(LOGIT_STATISTICS)
        for name, holds in {
            "stages": 0 < len(self.stages) <= MAX_STAGES and all(isinstance(stage, str) for stage in self.stages),
            "steps": len(self.steps) == len(self.stages)
            and all(isinstance(step, int) and 1 <= step <= MAX_STEP for step in self.steps),
            "mean": _are_numbers(self.mean, columns),
            "deviation": _are_numbers(self.deviation, columns) and min(self.deviation) > 0,
            "weights": _are_numbers(self.weights, columns),
            "energy": _are_numbers((self.energy_median, self.energy_rare), 2) and self.energy_median < self.energy_rare,
            "scores": MIN_FRAMES <= len(self.scores) <= MAX_SCORES
            and _are_numbers(self.scores, len(self.scores))
            and list(self.scores) == sorted(self.scores),
            **{name: isinstance(getattr(self, name), dict) for name in OTHER_SCALES},
        }.items():
            if not holds:
                raise ValueError(f"{name} cannot be used")


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _are_numbers(values: Any, count: int) -> bool:
    return len(values) == count and all(is_number(one, -MAX_STATISTIC, MAX_STATISTIC) for one in values)


def other_scale(method: Method, precision: str) -> str:
    """The scale that a method needs in a number format; empty for fp32's, which is bf16's as well."""
    parts = {"int8": precision == "int8", "dropout": draws_dropout(method.mode)}
    return "_".join(name for name, needs in parts.items() if needs)


def familiarity_record(meta: CheckpointMeta, method: Method, precision: str = "fp32") -> FamiliarityRecord | None:
    """Returns the statistics for this method in a number format. None where the checkpoint has none, or has no scale
    for dropout masks or int8 where the network has them. bf16 has fp32's scale.
    """
    if not meta.familiarity:
        return None
    record, other = FamiliarityRecord.read(meta.familiarity), other_scale(method, precision)
    if not is_expected(record.expected, len(meta.classes)):
        raise InputError(
            f"the record of familiarity is not of {len(meta.classes)} classes; calibrate the checkpoint again"
        )
    return record.scale_of(other) if other else record


def reference_scores(meta: CheckpointMeta, method: Method, precision: str = "fp32") -> ReferenceScores | None:
    """Returns the scores of held-out frames for this method in a number format, if there are any."""
    record = familiarity_record(meta, method, precision)
    return record.reference() if record else None
