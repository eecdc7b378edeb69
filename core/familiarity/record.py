"""The familiarity statistics in a checkpoint's record; `core/familiarity/stored.py` builds the head. Reading a record
needs no torch."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from steadyseg.core.errors import InputError
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

    def excess(self, statistics: "Tensor", weights: "Tensor") -> "tuple[Tensor, Tensor]":
        """Returns (N, S) statistics in standard deviations from the mean, and (N,) how far the scores are novel."""
        import torch

        mean, deviation = (torch.tensor(column, dtype=torch.float64) for column in (self.mean, self.deviation))
        deviations = (statistics - mean) / deviation
        return deviations, ReferenceScores(self.scores).excess(deviations @ weights)


def rounded(values: "Tensor") -> tuple[float, ...]:
    """Returns the numbers rounded as in a record."""
    return tuple(round(one, 8) for one in values.tolist())


SCALE = tuple(field.name for field in fields(Scale))
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
    warming: dict[str, Any]
    """How novel frames raise the temperature (`core.familiarity.frame_temperature`): `slopes`, `level`, data of the
    fit."""
    about: dict[str, Any]
    """Data of the statistics, their shrinkage, and the interval of the alarm rate."""
    dropout: dict[str, Any]
    """`SCALE` of passes with dropout masks, which change the statistics; if empty, modes with dropout have no
    familiarity."""

    @classmethod
    def of(
        cls,
        stages: tuple[str, ...],
        steps: tuple[int, ...],
        scale: Scale,
        weights: "Tensor",
        warming: dict[str, Any],
        about: Mapping[str, Any],
        dropout: Scale | None = None,
    ) -> Self:
        """The record of a fit, with the number of novel held-out frames. `weights` (S,): of the statistics in the
        score."""
        count, alarms = len(scale.scores), sum(map(ReferenceScores(scale.scores).is_novel, scale.scores))
        interval = [round(end, 4) for end in binomial_interval(alarms, count)]
        counts = {"held_out_pictures": count, "alarms": alarms, "alarm_rate_interval": interval}
        return cls(
            stages=stages,
            steps=steps,
            weights=rounded(weights),
            **asdict(scale),
            warming=warming,
            about={**about, **counts},
            dropout=asdict(dropout) if dropout else {},
        )

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> "FamiliarityRecord":
        """Reads and checks the values of a record from anywhere; InputError for what cannot be used."""
        try:
            record = cls(**{name: _tuple(values[name]) for name in cls.__dataclass_fields__})
            record._check()
            if record.dropout:
                record.of_dropout()._check()
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"the record of familiarity is malformed ({error}); calibrate the checkpoint again"
            ) from error
        return record

    def of_dropout(self) -> "FamiliarityRecord":
        """The record for passes with dropout masks."""
        return replace(self, **{name: _tuple(self.dropout[name]) for name in SCALE})

    def _check(self) -> None:
        columns = len(self.stages) + len(LOGIT_STATISTICS)
        for name, holds in {
            "stages": 0 < len(self.stages) <= MAX_STAGES and all(isinstance(stage, str) for stage in self.stages),
            "steps": len(self.steps) == len(self.stages)
            and all(isinstance(step, int) and 1 <= step <= MAX_STEP for step in self.steps),
            "mean": _are_numbers(self.mean, columns),
            "deviation": _are_numbers(self.deviation, columns) and min(self.deviation) > 0,
            "weights": _are_numbers(self.weights, columns),
            "warming": _are_numbers([*self.warming["slopes"], self.warming["level"]], columns + 1),
            "energy": _are_numbers((self.energy_median, self.energy_rare), 2) and self.energy_median < self.energy_rare,
            "scores": MIN_FRAMES <= len(self.scores) <= MAX_SCORES
            and _are_numbers(self.scores, len(self.scores))
            and list(self.scores) == sorted(self.scores),
            "dropout": isinstance(self.dropout, dict),
        }.items():
            if not holds:
                raise ValueError(f"{name} cannot be used")


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _are_numbers(values: Any, count: int) -> bool:
    return len(values) == count and all(is_number(one, -MAX_STATISTIC, MAX_STATISTIC) for one in values)


def familiarity_record(meta: CheckpointMeta, method: Method) -> FamiliarityRecord | None:
    """Returns the statistics for this method. None where the checkpoint has none, or where the method draws dropout
    masks and the statistics are without masks.
    """
    if not meta.familiarity:
        return None
    record = FamiliarityRecord.read(meta.familiarity)
    if not draws_dropout(method.mode):
        return record
    return record.of_dropout() if record.dropout else None


def reference_scores(meta: CheckpointMeta, method: Method) -> ReferenceScores | None:
    """Returns the scores of held-out frames for this method, if there are any."""
    record = familiarity_record(meta, method)
    return ReferenceScores(record.scores, str(record.about.get("data", ""))) if record else None
