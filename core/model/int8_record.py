"""What a checkpoint's record says about int8: its check, and whether the loss is small enough; no torch here."""

from collections.abc import Sequence
from typing import Any

from steadyseg.core.options import is_number

WEIGHT_LEVELS = 63
"""Largest weight, of 127: with all 8 bits, sums of products saturate on processors without VNNI (an early
`camvid-realtime`: 84 % of the labels equal, with 7 bits 98 %); elsewhere the eighth bit gains nothing (an early
`camvid-unet-s`: 98.7 % both)."""
MAX_RANGE = 1e30
"""Largest input of a convolution in a record; float32 ends at 3e38."""
MAX_ACCURACY_LOSS, MAX_ECE_CHANGE = 0.005, 0.002
"""Largest loss on labelled stills at which int8 is chosen automatically; beyond, it is used only on request."""


def is_int8_record(record: Any) -> bool:
    """True if the record has all entries that `steadyseg calibrate --int8` writes; a record may come from anywhere."""
    try:
        pairs = [*record["ranges"].values(), record["accuracy"], record["ece"]]
        shares = [record["labels_equal"], *record["accuracy"], *record["ece"]]
        numbers = [one for least, greatest in pairs for one in (least, greatest)]
        return (
            all(is_number(one, -MAX_RANGE, MAX_RANGE) for one in numbers)
            and all(is_number(one, 0.0, 1.0) for one in shares)
            and is_number(record["temperature_ratio"], 0.1, 10.0)
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return False


def is_proven(accuracy: Sequence[float], ece: Sequence[float]) -> bool:
    """True if int8 loses so little that `--precision auto` may choose it. Each pair is (float32, int8), shares of 1."""
    return accuracy[0] - accuracy[1] <= MAX_ACCURACY_LOSS and abs(ece[1] - ece[0]) <= MAX_ECE_CHANGE
