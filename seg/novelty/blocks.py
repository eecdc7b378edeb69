"""A held-out block of neighbouring frames in each recording, with a gap on both sides: neighbours are nearly equal."""

from collections.abc import Sequence
from dataclasses import dataclass

from core.errors import InputError

BLOCK, GAP = 20, 10
"""Frames; CamVid's stills are a second apart."""


@dataclass(frozen=True)
class Blocks:
    """Indices into the list of names."""

    fitted: tuple[int, ...]
    held_back: tuple[int, ...]


def hold_back_blocks(names: Sequence[str], block: int = BLOCK, gap: int = GAP) -> Blocks:
    """Holds out the middle `block` frames of every recording; the fit gets all frames but them and `gap` frames on both
    sides. The recording is the part of a name before the first "_": CamVid's 0001TP_008550 is of 0001TP. InputError
    where a recording is too short to leave as many frames as a block has.
    """
    recordings: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        recordings.setdefault(name.split("_")[0], []).append(place)
    fitted: list[int] = []
    held_back: list[int] = []
    for recording, places in recordings.items():
        if len(places) < 2 * block + 2 * gap:
            raise InputError(
                f"recording {recording} has {len(places)} frames; a block of {block} with gaps of {gap} needs "
                f"{2 * block + 2 * gap}"
            )
        start = (len(places) - block) // 2
        held_back += places[start : start + block]
        fitted += places[: start - gap] + places[start + block + gap :]
    return Blocks(tuple(fitted), tuple(held_back))
