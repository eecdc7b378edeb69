"""What a checkpoint knows of its own world, opened for a method."""

from pathlib import Path

from core.checkpoint import CheckpointMeta, load_checkpoint
from core.method import Method, draws_dropout, fit_of
from core.novelty.head import NoveltyHead
from core.novelty.record import NoveltyRecord
from seg.pretrained import find_checkpoint


def open_head(model: str | Path, meta: CheckpointMeta, method: Method) -> NoveltyHead | None:
    """What tells of whole frames with this method; None where the checkpoint has no statistics, or none for passes like these.

    The statistics are those of one pass without dropout: masks move features too.
    """
    if not meta.novelty or draws_dropout(method.mode):
        return None
    path = find_checkpoint(model)
    record = NoveltyRecord.read(meta.novelty)
    return record.head(load_checkpoint(path)[0], fit_of(record.temperatures, method) if method.adaptive else None)
