"""The novelty head of a checkpoint: its matrices among the tensors, with the numbers of the record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from steadyseg.core.errors import InputError, first_line
from steadyseg.core.method import Method
from steadyseg.core.model.model import Model
from steadyseg.core.model.tensor_file import NOVELTY_PREFIX as PREFIX
from steadyseg.core.model.tensor_file import below
from steadyseg.core.novelty.head import NoveltyHead
from steadyseg.core.novelty.record import NoveltyRecord, novelty_record
from steadyseg.core.novelty.statistics import ClassDistance, FrameDistance


@dataclass(frozen=True)
class NoveltyFit:
    """Record and tensors of a novelty fit, as they go into a checkpoint."""

    record: dict[str, Any]
    tensors: dict[str, Tensor]


def build_head(record: NoveltyRecord, tensors: Mapping[str, Tensor], temperature: float = 1.0) -> NoveltyHead:
    """Builds the novelty head. `tensors`: of a checkpoint; only names with `PREFIX` are read. `temperature`: of frames
    that are not novel."""
    own = {name: value.float() for name, value in below(tensors, PREFIX).items()}
    try:
        parts = {name: below(own, f"{name}.") for name in record.stages}
        if absent := [name for name, values in parts.items() if not values]:
            raise KeyError(f"none of {absent[0]}")
        stages = [_distance(parts[name]) for name in record.stages]
    except (KeyError, RuntimeError) as error:
        raise InputError(
            f"the matrices of novelty do not fit their record ({first_line(error)}); calibrate it again"
        ) from error
    return NoveltyHead(record, stages, temperature)


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


def novelty_tensors(names: tuple[str, ...], stages: Sequence[FrameDistance | ClassDistance]) -> dict[str, Tensor]:
    """The tensors of the distances by their names in a checkpoint."""
    return {
        f"{PREFIX}{name}.{key}": value
        for name, stage in zip(names, stages, strict=True)
        for key, value in stage.state_dict().items()
    }


def novelty_head(model: Model, method: Method) -> NoveltyHead | None:
    """Returns the novelty head of this method; None without statistics for it."""
    record = novelty_record(model.meta, method)
    return build_head(record, model.tensors, method.temperature) if record else None
