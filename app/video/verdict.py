"""The words about the labels of a frame or a file: how many are expected to be right.

The page, `video`, `batch` and their reports say the same. The page in a browser gets the words with its network.
"""

from collections.abc import Mapping
from typing import Any

from steadyseg.core.frame import CLAIMS, Maps, Verdict

FEW = "few labels can be trusted here"
WORDS: dict[Verdict, str] = {
    "expected": "about {right} right",
    "doubtful": f"{FEW}: about {{right}} right",
    "unlike": f"{FEW}: this does not look like {{data}}",
    "no statistics": "unverified: no expected accuracy was fitted",
    "not calibrated": "not calibrated: confidence is the network's own",
    "no answer": "no answer: the logits are not finite",
}
"""A frame's verdict in words. `right`: the expected accuracy. `data`: the training data."""
ROADS = {"camvid": "a street"}
"""Training data in words; other data are `THE_DATA`."""
THE_DATA = "the training data"
MOSTLY, PARTLY = 1 / 3, 0.1
"""A file is doubtful if more than `MOSTLY` of its frames are, and partly doubtful if more than `PARTLY` are."""
CAVEAT = "an estimate: fitted on other pictures, not measured on these"


def describe(verdict: Verdict, data: str, expected_accuracy: float) -> str:
    """A verdict in words. `data`: name of the training data in the checkpoint's record."""
    return WORDS[verdict].format(right=percent(expected_accuracy), data=ROADS.get(data, THE_DATA))


def describe_frame(maps: Maps, data: str = "") -> str:
    """Describes the labels of a frame in words. `data`: name of the training data."""
    return describe(maps.verdict, data, maps.expected_accuracy)


def stream_verdict(shares: Mapping[Verdict, float]) -> Verdict:
    """The verdict on all frames of a report: the worst that holds for more than `MOSTLY` of them, or the most frequent.

    `shares`: shares of the frames by their verdicts.
    """
    if shares.get("no answer", 0.0) > MOSTLY:
        return "no answer"
    unlike, doubtful = (shares.get(one, 0.0) for one in ("unlike", "doubtful"))
    if unlike + doubtful > MOSTLY:
        return "unlike" if unlike >= doubtful else "doubtful"
    return max(shares, key=lambda one: shares[one], default="no answer")


def describe_stream(record: Mapping[str, Any]) -> str:
    """Describes all frames of a report (app/video/report.py), the worst first."""
    state, shares, data, parts = record["state"], record["verdicts"], record["training_data"], []
    if unknown := shares.get("no answer"):
        parts.append(f"no answer: {percent(unknown)} of the frames")
    unlike, doubtful = (shares.get(one, 0.0) for one in ("unlike", "doubtful"))
    if state in ("unlike", "doubtful") or unlike + doubtful > PARTLY:
        where = "" if unlike + doubtful == 1 else f" in {percent(unlike + doubtful)} of the frames"
        parts.append(FEW.removesuffix(" here") + where)
    if unlike > PARTLY:
        parts.append(f"{percent(unlike)} of the frames do not look like {ROADS.get(data, THE_DATA)}")
    if state in ("no statistics", "not calibrated"):
        parts.append(WORDS[state])
    if any(one in shares for one in CLAIMS):
        low, high = record["expected_accuracy_interval"]
        parts.append(f"about {percent(record['expected_accuracy'])} right ({percent(low)} to {percent(high)})")
    return "; ".join(parts)


def marked(name: str, verdict: Verdict) -> str:
    """The name of a figure of the network's own labels, with a mark where few should trust it."""
    marks: dict[Verdict, str] = {"expected": "", "doubtful": "doubtful", "unlike": "doubtful"}
    mark = marks.get(verdict, verdict if verdict in ("not calibrated", "no answer") else "unverified")
    return f"{name} ({mark})" if mark else name


def percent(share: float) -> str:
    """A share as whole percent."""
    return "under 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"
