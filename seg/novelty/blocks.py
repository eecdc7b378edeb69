"""One block of neighbouring frames of each recording held back, with gaps: neighbours of fitted frames are nearly
fitted."""

from collections.abc import Sequence
from dataclasses import dataclass

from core.errors import InputError

BLOCK, GAP = 20, 10
"""Frames; CamVid's stills are a second apart."""


@dataclass(frozen=True)
class Blocks:
    """Places in the list of names."""

    fitted: tuple[int, ...]
    held_back: tuple[int, ...]


def hold_back_blocks(names: Sequence[str], block: int = BLOCK, gap: int = GAP) -> Blocks:
    """The middle `block` frames of every recording, and all but them and `gap` frames on both sides of them.

    A recording is what stands before the first "_" of a name: CamVid's 0001TP_008550 is of 0001TP. InputError where a
    recording is too short to leave as many frames as a block has.
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
