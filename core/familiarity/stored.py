"""The familiarity head of a checkpoint: its matrices among the tensors, with the numbers of the record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from steadyseg.core.errors import InputError, first_line
from steadyseg.core.familiarity.head import FamiliarityHead
from steadyseg.core.familiarity.record import FamiliarityRecord, familiarity_record
from steadyseg.core.familiarity.statistics import ClassDistance, FrameDistance
from steadyseg.core.method import Method
from steadyseg.core.model.model import Model
from steadyseg.core.model.tensor_file import FAMILIARITY_PREFIX as PREFIX
from steadyseg.core.model.tensor_file import below


@dataclass(frozen=True)
class FamiliarityFit:
    """Record and tensors of a familiarity fit, as they go into a checkpoint."""

    record: dict[str, Any]
    tensors: dict[str, Tensor]


def build_head(record: FamiliarityRecord, tensors: Mapping[str, Tensor]) -> FamiliarityHead:
    """Builds the familiarity head. `tensors`: of a checkpoint; only names with `PREFIX` are read."""
    own = {name: value.float() for name, value in below(tensors, PREFIX).items()}
    try:
        parts = {name: below(own, f"{name}.") for name in record.stages}
        if absent := [name for name, values in parts.items() if not values]:
            raise KeyError(f"none of {absent[0]}")
        stages = [_distance(parts[name]) for name in record.stages]
    except (KeyError, RuntimeError) as error:
        raise InputError(
            f"the matrices of familiarity do not fit their record ({first_line(error)}); calibrate it again"
        ) from error
    return FamiliarityHead(record, stages)


def _distance(values: Mapping[str, Tensor]) -> FrameDistance | ClassDistance:
    """The distance of a stage: to the mean of all frames, or to the nearest class if there are class means. It uses the
    tensors of the file without a copy; their biases give its sizes."""
    channels = values["whiten.bias"].numel()
    found: FrameDistance | ClassDistance
    with torch.device("meta"):
        if "classes.bias" in values:
            found = ClassDistance(channels, values["classes.bias"].numel())
        else:
            found = FrameDistance(channels)
    found.load_state_dict(values, assign=True)
    return found


def familiarity_tensors(names: tuple[str, ...], stages: Sequence[FrameDistance | ClassDistance]) -> dict[str, Tensor]:
    """The tensors of the distances by their names in a checkpoint."""
    return {
        f"{PREFIX}{name}.{key}": value
        for name, stage in zip(names, stages, strict=True)
        for key, value in stage.state_dict().items()
    }


def familiarity_head(model: Model, method: Method, precision: str = "fp32") -> FamiliarityHead | None:
    """Returns the familiarity head of this method in a number format; None without statistics for it."""
    record = familiarity_record(model.meta, method, precision)
    return build_head(record, model.tensors) if record else None
