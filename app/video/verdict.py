"""The words about how far the confidence of a frame or a file is verified.

The page, `video`, `batch` and their reports say the same. The page in a browser gets the words with its network.
"""

from collections.abc import Mapping
from typing import Any

from steadyseg.core.frame import Maps, Verdict
from steadyseg.core.reference import NOVEL

WORDS: dict[Verdict, str] = {
    "familiar": "about {right} right",
    "unfamiliar": "unverified here: unlike {data}",
    "no statistics": "unverified: nothing to compare this picture with",
    "not calibrated": "not calibrated: confidence is the network's own",
    "no answer": "no answer: the logits are not finite",
}
"""A frame's verdict in words. `right`: the expected accuracy, which is claimed for no other frame. `data`: the training
data. Under corruption the mean confidence at one temperature is 9 to 10 points off (docs/records/familiarity)."""
ROADS = {"camvid": "CamVid's roads"}
"""Training data in words; other data are `THE_DATA`."""
THE_DATA = "the training data"
MOSTLY, PARTLY = 1 / 3, 2 * NOVEL
"""A stream is unfamiliar if more than `MOSTLY` of its frames are, and partly unfamiliar if more than `PARTLY` are."""
CAVEAT = "familiar is no proof: the network can be wrong on such frames too"


def describe(verdict: Verdict, data: str, expected_accuracy: float) -> str:
    """A verdict in words. `data`: name of the training data in the checkpoint's record."""
    return WORDS[verdict].format(right=percent(expected_accuracy), data=ROADS.get(data, THE_DATA))


def describe_frame(maps: Maps, data: str = "") -> str:
    """Describes in words how far the confidence of a frame is verified. `data`: name of the training data."""
    words = describe(maps.verdict, data, maps.expected_accuracy)
    if maps.ood_s is not None and maps.verdict == "unfamiliar":
        return f"{words}, for {maps.ood_s:.0f} s"
    if maps.below is not None and maps.verdict == "familiar":
        return f"{low_accuracy(maps.below.limit)} for {maps.below.seconds:.0f} s; {words}"
    return words


def low_accuracy(limit: float) -> str:
    """The words for a low expected accuracy; the caller adds the time."""
    return f"expected accuracy below {percent(limit)}"


def stream_verdict(shares: Mapping[Verdict, float]) -> Verdict:
    """The verdict on all frames of a report: the worst that holds for more than `MOSTLY` of them, or the most frequent.

    `shares`: shares of the frames by their verdicts.
    """
    unusable: tuple[Verdict, ...] = ("no answer", "unfamiliar")
    worst = [one for one in unusable if shares.get(one, 0.0) > MOSTLY]
    return worst[0] if worst else max(shares, key=lambda one: shares[one], default="no answer")


def describe_stream(record: Mapping[str, Any]) -> str:
    """Describes all frames of a report (app/video/report.py), the worst first."""
    state, shares, data, parts = record["state"], record["verdicts"], record["training_data"], []
    if unknown := shares.get("no answer"):
        parts.append(f"no answer: {percent(unknown)} of the frames")
    unlike = shares.get("unfamiliar", 0.0)
    if state == "unfamiliar" or unlike > PARTLY or record.get("ood_alarms"):
        partly = "" if state == "unfamiliar" else "partly "
        frames = "" if unlike == 1 else f"{percent(unlike)} of the frames are "
        parts.append(f"{partly}unverified: {frames}unlike {ROADS.get(data, THE_DATA)}")
    if alarms := record.get("ood_alarms"):
        parts.append(f"{alarms} alarm{'s' * (alarms > 1)} of another place than it was trained for")
    if times := record.get("low_accuracies"):
        first, again = record["low_accuracy"][0], f", and {times - 1} more" if times > 1 else ""
        span = f"from {clock(first['since_s'])} to {clock(first['until_s'])}"
        parts.append(f"{low_accuracy(first['limit'])} {span}{again}")
    if state in ("no statistics", "not calibrated"):
        parts.append(WORDS[state])
    if "familiar" in shares and state != "unfamiliar":
        parts.append(
            f"about {percent(record['verified_accuracy'])} right{' in the others' if unlike or unknown else ''}"
        )
    return "; ".join(parts)


def mark_of(verdict: Verdict) -> str:
    """The mark beside a figure of the network's own labels that nothing verifies; empty for a familiar frame."""
    return {"familiar": "", "not calibrated": "not calibrated", "no answer": "no answer"}.get(verdict, "unverified")


def marked(name: str, verdict: Verdict) -> str:
    """The name of a figure of the network's own labels with its mark."""
    return f"{name} ({mark})" if (mark := mark_of(verdict)) else name


def clock(seconds: float) -> str:
    """A time in a stream: 1:05 for 65.4 seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def percent(share: float) -> str:
    """A share as whole percent."""
    return "under 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"
