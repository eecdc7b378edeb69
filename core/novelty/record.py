"""The statistics of a network's own world in its checkpoint: numbers in the record, matrices among the tensors."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from core.errors import InputError
from core.method import draws_dropout, method_of_fit
from core.model.checkpoint import NOVELTY_PREFIX as PREFIX
from core.novelty.head import NoveltyHead, NoveltyParameters
from core.novelty.scale import Scale
from core.novelty.statistics import ClassDistance, FrameDistance, RegionDistance, statistic_names
from core.reference import MIN_FRAMES, ReferenceScores

MAX_STAGES, MAX_STEP = 8, 64
REGIONS = "regions"
SCALE = tuple(field.name for field in fields(Scale))
"""The fields that say how novel a statistic is."""


@dataclass(frozen=True)
class NoveltyFit:
    """What goes into a checkpoint."""

    record: dict[str, Any]
    tensors: dict[str, Tensor]


@dataclass(frozen=True)
class NoveltyRecord:
    """What `calibrate` found; see the fields of `core.novelty.head.NoveltyParameters`."""

    stages: tuple[str, ...]
    """Whose mean features are compared with those of training frames; regions are of the last one."""
    steps: tuple[int, ...]
    """Every so many-th row and column of each stage is looked at."""
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    weights: tuple[float, ...]
    region_median: float
    region_rare: float
    scores: tuple[float, ...]
    """Of the held-back frames, ascending."""
    temperatures: dict[str, dict[str, Any]]
    """By method: its settings, `slopes`, `level` and what it was fitted on."""
    about: dict[str, Any]
    """What the statistics were fitted on, their shrinkage, and the interval of the alarm rate."""
    dropout: dict[str, Any]
    """`SCALE` of passes with dropout masks, which move the statistics; empty: dropout modes tell no novelty."""

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> "NoveltyRecord":
        """InputError for what cannot be used: a record may come from anywhere."""
        try:
            values = {"dropout": {}, **values}  # older records have none
            record = cls(**{name: _tuple(values[name]) for name in cls.__dataclass_fields__})
            record._check()
            if record.dropout:
                record.of_dropout()._check()
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"the record of its own world is malformed ({error}); calibrate the checkpoint again"
            ) from error
        return record

    def of_dropout(self) -> "NoveltyRecord":
        """The same for passes with dropout masks."""
        return replace(self, **{name: _tuple(self.dropout[name]) for name in SCALE})

    def head(self, tensors: Mapping[str, Tensor], fit: Mapping[str, Any] | None) -> NoveltyHead:
        """`tensors`: a checkpoint's; those without `PREFIX` are passed over. `fit`: of the method; None: level 0."""
        own = {name.removeprefix(PREFIX): value.float() for name, value in tensors.items() if name.startswith(PREFIX)}
        try:
            stages = [_distance(own, name) for name in self.stages]
            mine = _below(own, f"{REGIONS}.")
            regions = RegionDistance(mine["whiten.bias"].numel(), mine["classes.bias"].numel())
            regions.load_state_dict(mine)
        except (KeyError, RuntimeError) as error:
            first = str(error).splitlines()[0]
            raise InputError(
                f"the matrices of its own world do not fit its record ({first}); calibrate it again"
            ) from error
        slopes = fit["slopes"] if fit else [0.0] * len(self.mean)
        columns = (self.mean, self.deviation, self.weights, slopes)
        mean, deviation, weights, own_slopes = (torch.tensor(column, dtype=torch.float32) for column in columns)
        level = float(fit["level"]) if fit else 0.0
        regional, own_world = (self.region_median, self.region_rare), ReferenceScores(self.scores)
        readings = NoveltyParameters(mean, deviation, weights, own_slopes, level, *regional, own_world)
        return NoveltyHead(self.stages, self.steps, stages, regions, readings)

    def _check(self) -> None:
        columns = len(statistic_names(self.stages))
        slopes = [fit["slopes"] for fit in self.temperatures.values()]
        levels = [fit["level"] for fit in self.temperatures.values()]
        with_masks = [key for key, fit in self.temperatures.items() if draws_dropout(method_of_fit(key, fit).mode)]
        for name, holds in {
            "stages": 0 < len(self.stages) <= MAX_STAGES and all(isinstance(stage, str) for stage in self.stages),
            "steps": len(self.steps) == len(self.stages)
            and all(isinstance(step, int) and 1 <= step <= MAX_STEP for step in self.steps),
            "mean": _are_numbers(self.mean, columns),
            "deviation": _are_numbers(self.deviation, columns) and min(self.deviation) > 0,
            "weights": _are_numbers(self.weights, columns),
            "slopes": all(_are_numbers(one, columns) for one in slopes) and _are_numbers(levels, len(levels)),
            "region": _are_numbers((self.region_median, self.region_rare), 2) and self.region_median < self.region_rare,
            "scores": len(self.scores) >= MIN_FRAMES
            and _are_numbers(self.scores, len(self.scores))
            and list(self.scores) == sorted(self.scores),
            "dropout": isinstance(self.dropout, dict) and bool(self.dropout or not with_masks),
        }.items():
            if not holds:
                raise ValueError(f"{name} cannot be used")


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _are_numbers(values: Any, count: int) -> bool:
    return len(values) == count and all(type(one) in (int, float) and math.isfinite(one) for one in values)


def _below(values: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}


def _distance(values: Mapping[str, Tensor], name: str) -> FrameDistance | ClassDistance:
    """Of a stage: from the mean of all frames, or from the nearest class where there are class means."""
    channels, classes = values[f"{name}.whiten.bias"].numel(), values.get(f"{name}.classes.bias")
    found = FrameDistance(channels) if classes is None else ClassDistance(channels, classes.numel())
    found.load_state_dict(_below(values, f"{name}."))
    return found


def novelty_tensors(
    names: tuple[str, ...], stages: Sequence[FrameDistance | ClassDistance], regions: RegionDistance
) -> dict[str, Tensor]:
    """As they are kept in a checkpoint."""
    modules = {**dict(zip(names, stages, strict=True)), REGIONS: regions}
    return {
        f"{PREFIX}{name}.{key}": value for name, module in modules.items() for key, value in module.state_dict().items()
    }
