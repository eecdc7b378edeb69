"""The papers' expectations of smoothing against the reports: each statement with its figures and how often it holds."""

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from steadyseg.studies.analysis.plots import smoothing_pairs
from steadyseg.studies.harness.findings import Finding

Report = dict[str, Any]
HIGH = 0.3
"""Share of pi above which smoothing layers cut frequencies (arXiv 2105.12639, Sec. 2.2)."""


def plain_and_smooth(rows: Sequence[Report]) -> tuple[str, str]:
    """The two networks' names, plain first."""
    names = list(dict.fromkeys(row["model"] for row in rows))
    return names[0], names[1]


def largest_is_smaller(report: Report) -> Finding:
    """Compares the networks' largest Hessian eigenvalues, mini-batch by mini-batch: both saw the same pictures."""
    rows = report["results"]["rows"]
    sides = [
        [max(row["eigenvalues"], key=abs) for row in rows if row["model"] == name] for name in plain_and_smooth(rows)
    ]
    told = " against ".join(with_spread(side, ".3g") for side in sides)
    pairs = list(zip(*sides, strict=True))
    return Finding(f"{told} (mean ± sd over mini-batches)", sum(after < before for before, after in pairs), len(pairs))


def fewer_are_negative(report: Report) -> Finding:
    """Compares the share of negative ones (NEP) among each mini-batch's eigenvalues of largest magnitude."""
    rows = report["results"]["rows"]
    sides = [
        [statistics.fmean(value < 0 for value in row["eigenvalues"]) for row in rows if row["model"] == name]
        for name in plain_and_smooth(rows)
    ]
    told = " against ".join(with_spread([100 * one for one in side], ".1f") + " %" for side in sides)
    pairs = list(zip(*sides, strict=True))
    return Finding(
        f"NEP of the {report['results']['top']} largest {told}",
        sum(after < before for before, after in pairs),
        len(pairs),
    )


def landscape_is_flatter(report: Report) -> Finding:
    """Compares the rise of the loss half way to the edge of the plane and at the edge."""
    plain, smooth = report["results"]["planes"]
    pairs = [(plain[key], smooth[key]) for key in ("half_rise", "end_rise")]
    words = ("near half way", "at the end")
    told = ", ".join(
        f"{word} {before:.3g} against {after:.3g} nats" for word, (before, after) in zip(words, pairs, strict=True)
    )
    return Finding(told, sum(after < before for before, after in pairs), len(pairs))


def smoothing_is_low_pass(report: Report) -> Finding:
    """The mean change of the relative log amplitude above 0.3 pi at each smoothing layer, dropout off."""
    changes = []
    for before, after in smoothing_pairs(report["results"]["rows"]):
        if before["mode"] == "dnn":
            changes.append(mean_above(after) - mean_above(before))
    told = ", ".join(f"{change:+.2f}" for change in changes)
    return Finding(f"change above {HIGH:g} pi: {told}", sum(change < 0 for change in changes), len(changes))


def mean_above(row: Report) -> float:
    high = [a for f, a in zip(row["frequency"], row["amplitude"], strict=True) if f >= HIGH]
    return statistics.fmean(high)


def variance_falls(report: Report) -> Finding:
    """Compares the variance over positions before and after each smoothing layer."""
    shares = [after["positions"] / before["positions"] for before, after in smoothing_pairs(report["results"]["rows"])]
    told = ", ".join(f"{share:.2f}" for share in shares)
    return Finding(f"after / before: {told}", sum(share < 1 for share in shares), len(shares))


def draws_shrink_variance(report: Report) -> Finding | None:
    """Variance over positions: the mean of the draws against single draws; None without dropout."""
    shares = [
        row["averaged"] / row["positions"]
        for row in report["results"]["rows"]
        if row["averaged"] is not None and row["draws"] and row["positions"]
    ]
    if not shares:
        return None
    told = f"averaged / single draw: {min(shares):.2f} to {max(shares):.2f} at the maps that dropout reaches"
    return Finding(told, sum(share < 1 for share in shares), len(shares))


def with_spread(values: Sequence[float], form: str) -> str:
    sd = f" ± {statistics.stdev(values):{form}}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):{form}}{sd}"


EXPECTED: tuple[tuple[str, str, Callable[[Report], Finding | None]], ...] = (
    ("hessian", "the largest eigenvalue of the Hessian is smaller", largest_is_smaller),
    ("hessian", "fewer of the largest eigenvalues are negative", fewer_are_negative),
    ("landscape", "the loss rises less around the trained weights", landscape_is_flatter),
    ("fourier", "smoothing layers cut amplitude above 0.3 pi", smoothing_is_low_pass),
    ("variance", "variance falls at each smoothing layer", variance_falls),
    ("variance", "the mean of dropout draws varies less over positions", draws_shrink_variance),
)
"""Study, what the papers expect of smoothing, how it is looked up."""
