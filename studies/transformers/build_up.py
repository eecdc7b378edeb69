"""The build-up rule of AlterNet as a procedure (arXiv 2202.06709, Sec. 4).

From the end of a pre-activation ResNet, the convolution block at the end of a stage is replaced by attention,
alternately with the convolution blocks that stay. Where held-out accuracy does not rise, the replacement is taken back
and the next one is tried at the end of the stage before. Test pictures have no part in it. The first seed chooses; what
it tried is trained again from the second.
"""

from collections.abc import Callable, Iterator

from steadyseg.classification.networks.layout import ALTERNET_BLOCKS
from steadyseg.studies.transformers.rows import ADAMW, SEEDS, Row

DEPTH, CHANNELS, EPOCHS, MOST_STEPS = 34, 8, 15, 6

Attention = tuple[int, ...]
"""Attention blocks of each stage."""


def build_up(accuracy: Callable[[Row], float | None]) -> Iterator[Row]:
    """Yields the trainings one after the other.

    `accuracy` returns that of a finished training on the held-out pictures, else None, which ends the procedure.
    """
    tried: list[tuple[Attention, float]] = []
    while (attention := next_attention(tried)) is not None:
        row = row_of(attention, SEEDS[0])
        yield row
        found = accuracy(row)
        if found is None:
            return
        tried.append((attention, found))
    yield from (row_of(attention, seed) for seed in SEEDS[1:] for attention, _ in tried)


def next_attention(tried: list[tuple[Attention, float]]) -> Attention | None:
    """Returns the layout to try after those tried so far, the first of them without attention; None after the last."""
    most = [count // 2 for count in ALTERNET_BLOCKS[DEPTH]]
    if not tried:
        return (0,) * len(most)
    kept, best = tried[0]
    stage = len(most) - 1
    for attention, accuracy in tried[1:]:
        stage = next(i for i, (a, b) in enumerate(zip(attention, kept, strict=True)) if a != b)
        if accuracy > best:
            kept, best = attention, accuracy
        else:
            stage -= 1
    while stage >= 0 and kept[stage] == most[stage]:
        stage -= 1
    if stage < 0 or len(tried) > MOST_STEPS:
        return None
    return (*kept[:stage], kept[stage] + 1, *kept[stage + 1 :])


def row_of(attention: Attention, seed: int) -> Row:
    layout = ",".join(map(str, attention))
    network = ("--network", f"alternet{DEPTH}", "--channels", str(CHANNELS), "--config", f"attention={layout}")
    return Row(f"build-up-{layout.replace(',', '')}-{seed}", (*ADAMW, *network), seed, EPOCHS)
