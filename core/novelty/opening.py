"""What a checkpoint knows of its own world, opened for a method."""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from core.method import Method, draws_dropout, fit_of
from core.model.checkpoint import CheckpointMeta, load_checkpoint
from core.novelty.head import NoveltyHead
from core.novelty.record import NoveltyRecord


def open_head(path: Path, meta: CheckpointMeta, method: Method) -> NoveltyHead | None:
    """Reads the checkpoint's file for `head_of`."""
    return head_of(meta, load_checkpoint(path)[0], method) if meta.novelty else None


def head_of(meta: CheckpointMeta, tensors: Mapping[str, Tensor], method: Method) -> NoveltyHead | None:
    """Returns the novelty head for this method; None where the checkpoint has no statistics, or none of dropout
    passes."""
    if not meta.novelty:
        return None
    record = NoveltyRecord.read(meta.novelty)
    if draws_dropout(method.mode):
        if not record.dropout:
            return None
        record = record.of_dropout()
    return record.head(tensors, fit_of(record.temperatures, method) if method.adaptive else None)
