"""What a checkpoint knows of its own world, opened for a method."""

from pathlib import Path

from core.method import Method, draws_dropout, fit_of
from core.model.checkpoint import CheckpointMeta, load_checkpoint
from core.novelty.head import NoveltyHead
from core.novelty.record import NoveltyRecord


def open_head(path: Path, meta: CheckpointMeta, method: Method) -> NoveltyHead | None:
    """What tells of whole frames with this method; None where the checkpoint has no statistics, or none of dropout
    passes."""
    if not meta.novelty:
        return None
    record = NoveltyRecord.read(meta.novelty)
    if draws_dropout(method.mode):
        if not record.dropout:
            return None
        record = record.of_dropout()
    tensors, _ = load_checkpoint(path)
    return record.head(tensors, fit_of(record.temperatures, method) if method.adaptive else None)
