"""The words about how familiar a frame or a file is to the network, and how many pixels are expected to be right. The
page, `video`, `batch` and their reports say the same.
"""

from collections.abc import Mapping
from typing import Any

from steadyseg.core.frame import Maps
from steadyseg.core.reference import NOVEL

UNUSUAL = 0.2
"""A frame is unusual if its familiarity is at most this."""
CAVEAT = "not novel is no proof: the network can be wrong on such frames too"


def familiarity_level(familiarity: float) -> str:
    """The word for a familiarity, 0..1: `novel`, `unusual` or `familiar`."""
    return "novel" if familiarity <= NOVEL else "unusual" if familiarity <= UNUSUAL else "familiar"


def frame_level(maps: Maps) -> str:
    """The word for a frame with a familiarity; `novel` also during an alarm."""
    assert maps.familiarity is not None, "whoever asks has looked"
    return "novel" if maps.ood_s is not None else familiarity_level(maps.familiarity)


def describe_frame(maps: Maps) -> str | None:
    """Describes in words how familiar such frames are to the network; None without novelty statistics.

    A novel frame gets no share of right pixels. Under corruption, the mean confidence at one temperature is 9 to 10
    points off (docs/studies/novelty).
    """
    if maps.familiarity is None:
        return None
    if maps.ood_s is not None:
        return f"for {maps.ood_s:.0f} s: another place than it was trained for"
    level = frame_level(maps)
    words = f"{level} (familiarity {percent(maps.familiarity)})"
    if level == "novel" or maps.expected_accuracy is None:
        return words
    words += f", about {percent(maps.expected_accuracy)} right"
    if maps.below is None:
        return words
    return f"{words}; {low_accuracy(maps.below.limit)} for {maps.below.seconds:.0f} s"


def low_accuracy(limit: float) -> str:
    """The words for a low expected accuracy; the caller adds the time."""
    return f"expected accuracy below {percent(limit)}"


def describe_stream(record: Mapping[str, Any]) -> str | None:
    """Describes all frames of a report (app/video/report.py) in words; None without novelty statistics."""
    if "novel_share" not in record:
        return None
    frames, novel = record["frames"], record["novel_frames"]
    middle = record["familiarity_p50"]
    words = f"{familiarity_level(middle)}: familiarity {percent(middle)} ({percent(NOVEL)} or less is novel)"
    words += f"; {novel} of {frames} frames {'is' if novel == 1 else 'are'} novel"
    if alarms := record["ood_alarms"]:
        words += f"; {alarms} alarm{'s' * (alarms > 1)} of another place than it was trained for"
    if "expected_accuracy" not in record:
        return words
    words += f"; about {percent(record['expected_accuracy'])} right{' in the others' if novel else ''}"
    if not (times := record["low_accuracies"]):
        return words
    first, again = record["low_accuracy"][0], f", and {times - 1} more" if times > 1 else ""
    words += f"; {low_accuracy(first['limit'])} from {clock(first['since_s'])} to {clock(first['until_s'])}"
    return words + again


def clock(seconds: float) -> str:
    """A time in a stream: 1:05 for 65.4 seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def percent(share: float) -> str:
    """A share as whole percent."""
    return f"{100 * share:.0f} %"
