"""Recordings by the names of their frames, and the division of a data set into splits by recording.

Neighbouring frames show nearly the same scene. If some of them are trained on and others measured on, the figures do
not hold for other places.
"""

import hashlib
import re
from collections.abc import Sequence

GUARD = 2
"""Stills on either side of a stretch that are neither trained on nor measured on; CamVid's are a second apart."""
MIN_FRAMES = 20
"""Smallest number of frames that is divided."""
_NUMBER = re.compile(r"[-_. ]*(?:f|frame|img|image)?[-_. ]*(\d+)$", re.IGNORECASE)


def recording_of(name: str) -> str:
    """Returns a frame's name without the number at its end: 0001TP_008550 is of 0001TP."""
    return _NUMBER.sub("", name)


def in_order(names: Sequence[str]) -> list[str]:
    """Sorts frames by recording, and each recording by number."""
    return sorted(names, key=lambda name: (recording_of(name), int(match[1]) if (match := _NUMBER.search(name)) else 0))


def divide(names: Sequence[str], shares: dict[str, float]) -> tuple[dict[str, str], list[str]]:
    """Gives each split about its share of the frames, and the rest to train; returns {name: split} and remarks.

    A split gets whole recordings. If none is small enough, it gets the end of the longest one, and the GUARD frames
    before this end belong to no split.
    """
    splits, remarks = dict.fromkeys(in_order(names), "train"), []
    wanted = {split: round(share * len(names)) for split, share in shares.items() if share > 0}
    if wanted and len(names) < MIN_FRAMES:
        return splits, [
            f"{len(names)} labelled pictures are too few to divide ({MIN_FRAMES} or more are): all are for training, "
            "and nothing is left to measure on"
        ]
    for split, count in wanted.items():
        recordings: dict[str, list[str]] = {}
        for name in (name for name, given in splits.items() if given == "train"):
            recordings.setdefault(recording_of(name), []).append(name)
        taken: list[str] = []
        for _, frames in sorted(recordings.items(), key=lambda item: hashlib.sha256(item[0].encode()).digest()):
            if len(taken) + len(frames) <= 1.25 * count:
                taken += frames
        if len(taken) < count / 2:
            recording, frames = max(recordings.items(), key=lambda item: len(item[1]))
            taken = frames[len(frames) - min(count, len(frames) // 2) :]
            for name in frames[-len(taken) - GUARD : -len(taken)]:
                del splits[name]
            remarks.append(
                f"{split} is the last {len(taken)} frames of the recording {recording or '(names without one)'}, whose "
                "beginning is trained on: its figures are of a familiar place; label another recording to measure on"
            )
        splits |= dict.fromkeys(taken, split)
    return splits, remarks
