"""Images held out of training: stretches (blocks of consecutive stills), or whole recordings by the names of their
frames.

Neighbouring stills show nearly the same scene, so single stills between trained stills say little about other places.
So a few stills on either side of a stretch are not used at all. Recipes are chosen and temperatures are fitted on the
stretches; val and test are for reporting.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadyseg.core.errors import InputError
from steadyseg.core.system.file_names import Names, known_name
from steadyseg.core.system.files import read_small

GUARD = 2
"""Unused stills on either side of a stretch, neither for training nor for measuring; CamVid's are a second apart."""
MIN_FRAMES = 20
"""Fewer frames are not divided."""
_NUMBER = re.compile(r"[-_. ]*(?:f|frame|img|image)?[-_. ]*(\d+)$", re.IGNORECASE)
CAMVID_STRETCHES = (
    ("0001TP_007560", "0001TP_007770"),
    ("0006R0_f03330", "0006R0_f03660"),
    ("0016E5_01710", "0016E5_02280"),
)
"""One stretch in each recording: 8, 12 and 20 stills. With the guards, training leaves out 52 of the 367 stills of
train. They have 9 to 20 % of the pixels of each class, most of Bicyclist. No other stretch of its length has class
shares nearer to its recording's (Kullback-Leibler divergence 0.032, 0.011 and 0.014). In 0016E5 only stretches before
frame 7300, 20 s or more from val, were compared."""


@dataclass(frozen=True)
class HeldOut:
    """Ascending indices into a list of names; the guards, stills on either side of a stretch, are in neither field."""

    trained: tuple[int, ...]
    held_out: tuple[int, ...]
    remarks: tuple[str, ...] = ()


def hold_out(names: Sequence[str], stretches: Sequence[tuple[str, str]], guard: int = GUARD) -> HeldOut:
    """Splits names, given in the order of the data set. A stretch (first, last) is held out with both its ends.

    The guards of a stretch end with its recording. Raises InputError for an unknown name, and for a stretch whose ends
    are in the wrong order or in two recordings.
    """
    place = {name: number for number, name in enumerate(names)}
    known = Names(place)
    stretches = [(known_name(first, known), known_name(last, known)) for first, last in stretches]
    held: set[int] = set()
    near: set[int] = set()
    for first, last in stretches:
        for name in (first, last):
            if name not in place:
                raise InputError(f"the held-out stretch {first} {last}: no image {name} in the training data")
        start, end = place[first], place[last]
        if start > end or recording_of(first) != recording_of(last):
            raise InputError(
                f"the held-out stretch {first} {last}: the first must come before the last of one recording"
            )
        around = range(max(start - guard, 0), min(end + guard + 1, len(names)))
        held.update(range(start, end + 1))
        near.update(number for number in around if recording_of(names[number]) == recording_of(first))
    trained = tuple(number for number in range(len(names)) if number not in held | near)
    return HeldOut(trained, tuple(sorted(held)))


def hold_out_recordings(names: Sequence[str]) -> HeldOut:
    """Holds out an eighth of the frames, in whole recordings where possible, but no frame of fewer than 20."""
    splits, remarks = divide(names, {"the held-out part": 1 / 8})
    trained = tuple(number for number, name in enumerate(names) if splits.get(name) == "train")
    held = tuple(number for number, name in enumerate(names) if splits.get(name, "train") != "train")
    return HeldOut(trained, held, tuple(remarks))


def camvid_stretches(names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Returns the first and the last image in `names` of each stretch of CamVid; empty for other data."""
    inside = ([name for name in names if first <= name <= last] for first, last in CAMVID_STRETCHES)
    return tuple((there[0], there[-1]) for there in inside if there)


def read_stretches(path: Path) -> tuple[tuple[str, str], ...]:
    """Reads stretches from a text file, the names `FIRST LAST` on each line."""
    lines = read_words(path, "the list of held-out stretches", "use --hold-out none")
    for words in lines:
        if len(words) != 2:
            raise InputError(f"{path}: expected the first and the last image of a stretch on each line, got {words}")
    return tuple((first, last) for first, last in lines)


def read_words(path: Path, what: str, mend: str) -> list[list[str]]:
    """Reads the words of each line of a text file; empty lines do not count. InputError for a file without words, with
    the `mend`."""
    try:
        lines = [line.split() for line in read_small(path).decode("utf-8-sig").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {what} cannot be read ({error})") from error
    if not lines:
        raise InputError(f"{path}: {what} is empty; {mend}")
    return lines


def recorded_names(training: Mapping[str, Any]) -> list[str]:
    """Returns the base names that a training's record lists as held out; images of simulated streets have no names."""
    names = training.get("held_out")
    return [str(name) for name in names] if isinstance(names, list) else []


def recording_of(name: str) -> str:
    """Returns a frame's name without the number at its end: 0001TP_008550 is of 0001TP."""
    return _NUMBER.sub("", name)


def number_of(name: str) -> int:
    """Returns the number at the end of a frame's name; 0 without a number."""
    return int(match[1]) if (match := _NUMBER.search(name)) else 0


def in_order(names: Sequence[str]) -> list[str]:
    """Sorts frames by recording, and each recording by number."""
    return sorted(names, key=lambda name: (recording_of(name), number_of(name)))


def divide(names: Sequence[str], shares: dict[str, float]) -> tuple[dict[str, str], list[str]]:
    """Gives each split about its share of the frames, and the rest to train; returns {name: split} and remarks.

    A split gets whole recordings. If no recording is small enough, it gets the end of the longest recording, and the
    GUARD frames before this end belong to no split.
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
