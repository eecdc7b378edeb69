"""A network's record of what remains above a threshold of confidence: the share of pixels, and of right ones among
them."""

import re
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, NamedTuple

from steadyseg.core.errors import InputError
from steadyseg.core.method import method_of_fit
from steadyseg.core.options import is_number

NAME = re.compile(r"[\w ]{1,40}")
"""The name of a set of frames: the page shows it, and a record from elsewhere could hold HTML."""


class Remaining(NamedTuple):
    """The pixels at or above a threshold, of one set of frames."""

    frames: str
    """Name of the set of frames, such as val."""
    kept: float
    """Share of all pixels, 0..1."""
    right: float
    """Share of right labels among them, 0..1."""


def is_threshold_record(record: Mapping[str, Any]) -> bool:
    """True if the record names its method, thresholds that rise from 0, and both shares of each set at every
    threshold."""
    try:
        method_of_fit(record)
        thresholds, sets = record["thresholds"], record["sets"]
        rows = [thresholds, *(row[name] for row in sets.values() for name in ("kept", "right"))]
        named = len(sets) > 0 and all(NAME.fullmatch(name) for name in sets)
    except (AttributeError, InputError, KeyError, TypeError):
        return False
    shares = all(isinstance(row, list) and all(is_number(value, 0, 1) for value in row) for row in rows)
    if not named or not shares or len({len(row) for row in rows}) != 1:
        return False
    return thresholds[:1] == [0.0] and thresholds == sorted(thresholds)


def remaining(record: Mapping[str, Any], threshold: float) -> list[Remaining]:
    """The remaining pixels, by set, at the highest measured threshold that is not above `threshold`, 0..1."""
    place = bisect_right(record["thresholds"], threshold + 1e-9) - 1
    return [Remaining(name, row["kept"][place], row["right"][place]) for name, row in record["sets"].items()]
