"""The words about how familiar a frame or a file is to the network, and how many pixels are expected to be right. The
page, `video`, `batch` and their reports say the same.
"""

from collections.abc import Mapping
from typing import Any

from steadyseg.core.frame import Maps
from steadyseg.core.reference import NOVEL

UNFAMILIAR = "unfamiliar"
"""The one state in which no label is to be used: grey overlay, raised uncertainty, and a dash for each figure."""
UNUSUAL = 0.2
"""A frame is unusual if its familiarity is at most this."""
MOSTLY, PARTLY = 1 / 3, 2 * NOVEL
"""A stream is unfamiliar if more than `MOSTLY` of its frames are, and partly unfamiliar if more than `PARTLY` are."""
CAVEAT = "familiar is no proof: the network can be wrong on such frames too"


def familiarity_level(familiarity: float) -> str:
    """The word for a familiarity, 0..1: `unfamiliar`, `unusual` or `familiar`."""
    return UNFAMILIAR if familiarity <= NOVEL else "unusual" if familiarity <= UNUSUAL else "familiar"


def frame_level(maps: Maps) -> str:
    """The word for a frame: `unfamiliar` also during an alarm and without an answer; empty without statistics."""
    if not maps.finite or maps.ood_s is not None:
        return UNFAMILIAR
    return "" if maps.familiarity is None else familiarity_level(maps.familiarity)


def stream_level(record: Mapping[str, Any]) -> str:
    """The word for all frames of a report, the worst that holds; empty without novelty statistics."""
    share = record["unfamiliar_share"]
    if share > MOSTLY:
        return UNFAMILIAR
    if share > PARTLY or record.get("ood_alarms"):
        return f"partly {UNFAMILIAR}"
    return familiarity_level(record["familiarity_p50"]) if "familiarity_p50" in record else ""


def figure(level: str, value: float, form: str = ".4f") -> str:
    """A figure of the network's own labels as text: a dash where its pictures are unfamiliar."""
    return "-" if level == UNFAMILIAR else format(value, form)


def describe_frame(maps: Maps) -> str | None:
    """Describes in words how familiar such frames are to the network; None without novelty statistics.

    An unfamiliar frame gets no expected accuracy: under corruption, the mean confidence at one temperature is 9 to 10
    points off (docs/records/novelty).
    """
    level = frame_level(maps)
    if not maps.finite:
        return f"{level}: no answer, the logits are not finite"
    if maps.familiarity is None:
        return None
    if maps.ood_s is not None:
        return f"{level} for {maps.ood_s:.0f} s: another place than it was trained for"
    words = f"{level} (familiarity {percent(maps.familiarity)})"
    if level == UNFAMILIAR or maps.expected_accuracy is None:
        return words
    words += f", about {percent(maps.expected_accuracy)} right"
    if maps.below is None:
        return words
    return f"{low_accuracy(maps.below.limit)} for {maps.below.seconds:.0f} s; {words}"


def low_accuracy(limit: float) -> str:
    """The words for a low expected accuracy; the caller adds the time."""
    return f"expected accuracy below {percent(limit)}"


def describe_stream(record: Mapping[str, Any]) -> str | None:
    """Describes all frames of a report (app/video/report.py), the worst first; None if there is nothing to say."""
    level, share, parts = stream_level(record), record["unfamiliar_share"], []
    if unknown := record["resets"].get("not_finite"):
        parts.append(f"no answer: {percent(unknown / record['frames'])} of the frames")
    if level.endswith(UNFAMILIAR):
        parts.append(f"{level}: {percent(share)} of the frames")
    if alarms := record.get("ood_alarms"):
        parts.append(f"{alarms} alarm{'s' * (alarms > 1)} of another place than it was trained for")
    if times := record.get("low_accuracies"):
        first, again = record["low_accuracy"][0], f", and {times - 1} more" if times > 1 else ""
        span = f"from {clock(first['since_s'])} to {clock(first['until_s'])}"
        parts.append(f"{low_accuracy(first['limit'])} {span}{again}")
    if level and not level.endswith(UNFAMILIAR):
        parts.append(f"{level}: familiarity {percent(record['familiarity_p50'])}")
        parts += [f"{percent(share)} of the frames {UNFAMILIAR}"] if share else []
    if level != UNFAMILIAR and "expected_accuracy" in record:
        parts.append(f"about {percent(record['expected_accuracy'])} right{' in the others' if share else ''}")
    return "; ".join(parts) or None


def clock(seconds: float) -> str:
    """A time in a stream: 1:05 for 65.4 seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def percent(share: float) -> str:
    """A share as whole percent."""
    return "under 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"
