"""The statements of arXiv 2202.06709 against the reports: each with its figures and how often it holds."""

import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from steadyseg.studies.harness.findings import Finding
from steadyseg.studies.transformers.rows import SEEDS

Report = dict[str, Any]
"""report.json of a study of `steadyseg analyze`."""
Rows = Sequence[dict[str, Any]]
LOW_BAND, HIGH_BAND = 0.1, 0.9
"""Centres of the lowest and highest band of noise, in units of pi."""


def compared(values: dict[str, Sequence[float]], first: str, second: str, form: str) -> Finding:
    """Counts where the first network's value is smaller than the second's; both have values of the same things, of
    every seed."""
    pairs = [
        pair
        for seed in SEEDS
        if {f"adamw-{first}-{seed}", f"adamw-{second}-{seed}"} <= values.keys()
        for pair in zip(values[f"adamw-{first}-{seed}"], values[f"adamw-{second}-{seed}"], strict=True)
    ]
    told = " against ".join(of_seeds(values, name, form) for name in (first, second))
    return Finding(told, sum(a < b for a, b in pairs), len(pairs))


def of_seeds(values: dict[str, Sequence[float]], name: str, form: str) -> str:
    """Mean of each seed, as `0.31, 0.28 (vit6)`."""
    means = [statistics.fmean(values[key]) for seed in SEEDS if (key := f"adamw-{name}-{seed}") in values]
    return ", ".join(f"{mean:{form}}" for mean in means) + f" ({name})"


def by_model(rows: Rows, value: Callable[[dict[str, Any]], float]) -> dict[str, Sequence[float]]:
    """The values of each network's rows."""
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row["model"], []).append(value(row))
    return {name: tuple(values) for name, values in found.items()}


def curvature(first: str, second: str) -> Callable[[Report], Finding]:
    """The mean of the positive ones (APE) among each mini-batch's largest eigenvalues."""

    def ape(row: dict[str, Any]) -> float:
        return statistics.fmean([value for value in row["eigenvalues"] if value > 0] or [0.0])

    return lambda report: compared(by_model(report["results"]["rows"], ape), first, second, ".3g")


def negative(first: str, second: str) -> Callable[[Report], Finding]:
    """The share of negative ones (NEP) among each mini-batch's largest eigenvalues."""

    def nep(row: dict[str, Any]) -> float:
        return statistics.fmean(value < 0 for value in row["eigenvalues"])

    return lambda report: compared(by_model(report["results"]["rows"], nep), first, second, ".2f")


def flatter(first: str, second: str) -> Callable[[Report], Finding]:
    """The rise of the loss half way to the edge of the plane, and at the edge."""

    def look(report: Report) -> Finding:
        rises: dict[str, Sequence[float]] = {
            plane["model"]: (plane["half_rise"], plane["end_rise"]) for plane in report["results"]["planes"]
        }
        return compared(rises, first, second, ".2f")

    return look


def steps(report: Report, key: str) -> Iterator[tuple[str, float, float]]:
    """(unit, figure of the map before it, figure of its own map) of the units that keep the map's size and channels."""
    rows = [row for row in report["results"]["rows"] if row.get("mode", "dnn") == "dnn"]
    for before, after in itertools.pairwise(rows):
        if all(before[same] == after[same] for same in ("model", "height", "width", "channels")):
            yield f"{after['model']}/{after['unit']}", before[key], after[key]


def is_attention(unit: str) -> bool:
    """Returns True for a ViT's attention and for the attention blocks of AlterNet-18: the last of stages 2 to 4."""
    network, part = unit.split("/")
    return part.startswith("attention") or (
        network.startswith("adamw-alternet18") and part.endswith(".1") and part[5] > "1"
    )


def attention_lowers(key: str, network: str, change: Callable[[float, float], float]) -> Callable[[Report], Finding]:
    """Counts the attention blocks behind which the figure is lower."""
    return _steps_of(key, network, change, True)


def others_raise(key: str, network: str, change: Callable[[float, float], float]) -> Callable[[Report], Finding]:
    """Counts the convolutions or MLPs behind which the figure is higher."""
    return _steps_of(key, network, change, False)


def _steps_of(
    key: str, network: str, change: Callable[[float, float], float], attention: bool
) -> Callable[[Report], Finding]:
    def look(report: Report) -> Finding:
        found = [
            (change(before, after), after < before if attention else after > before)
            for unit, before, after in steps(report, key)
            if unit.startswith(f"adamw-{network}-") and is_attention(unit) == attention
        ]
        shown = summary([one for one, _ in found])
        return Finding(f"{shown} ({network})", sum(holds for _, holds in found), len(found))

    return look


def summary(values: Sequence[float]) -> str:
    """Median and range."""
    if not values:
        return "-"
    return f"{statistics.median(values):+.2f}, from {min(values):+.2f} to {max(values):+.2f}"


def difference(before: float, after: float) -> float:
    return after - before


def relative(before: float, after: float) -> float:
    return after / before - 1


def noise(first: str, second: str, centre: float) -> Callable[[Report], Finding]:
    """Compares the drop in accuracy under noise of one frequency band, at each strength of the noise."""

    def look(report: Report) -> Finding:
        rows = [
            row
            for row in report["studies"]["bands"]["rows"]
            if row["noise_rms"] is not None and row["centre"] == centre and row["mode"] == "dnn"
        ]
        return compared(by_model(rows, lambda row: 100 * row["accuracy_drop"]), first, second, ".1f")

    return look


def corruption(first: str, second: str) -> Callable[[Report], Finding]:
    """The accuracy lost under each corruption."""

    def look(report: Report) -> Finding:
        study = report["studies"]["corruptions"]
        rows = [row for row in study["rows"] if row["mode"] == "dnn"]
        clean = {row["model"]: row["accuracy"] for row in study["clean"]}
        lost = by_model(rows, lambda row: 100 * (clean[row["model"]] - row["accuracy"]))
        return compared(lost, first, second, ".1f")

    return look


@dataclass(frozen=True)
class Statement:
    """A statement of the paper and how a report is asked for it."""

    words: str
    study: str
    look: Callable[[Report], Finding]


STATEMENTS: Iterable[Statement] = (
    Statement(
        "attention flattens the loss: smaller positive eigenvalues than the ResNet's",
        "hessian",
        curvature("vit6", "preresnet18"),
    ),
    Statement("the same of AlterNet", "hessian", curvature("alternet18", "preresnet18")),
    Statement(
        "a ViT's loss is less convex: more negative eigenvalues than the ResNet's",
        "hessian",
        negative("preresnet18", "vit6"),
    ),
    Statement("AlterNet has fewer negative eigenvalues than the ViT", "hessian", negative("alternet18", "vit6")),
    Statement(
        "the mean of the tokens instead of a class token: fewer negative eigenvalues",
        "hessian",
        negative("vit6-gap", "vit6"),
    ),
    Statement(
        "the loss rises less around a ViT's weights than around the ResNet's",
        "landscape",
        flatter("vit6", "preresnet18"),
    ),
    Statement("the same of AlterNet", "landscape", flatter("alternet18", "preresnet18")),
    Statement(
        "attention is a low-pass filter: less amplitude just below pi behind it",
        "fourier",
        attention_lowers("high", "vit6", difference),
    ),
    Statement("the same of AlterNet's attention", "fourier", attention_lowers("high", "alternet18", difference)),
    Statement("MLPs are high-pass filters", "fourier", others_raise("high", "vit6", difference)),
    Statement("convolutions are high-pass filters", "fourier", others_raise("high", "preresnet18", difference)),
    Statement(
        "attention lowers the variance of feature maps", "variance", attention_lowers("positions", "vit6", relative)
    ),
    Statement("the same of AlterNet's attention", "variance", attention_lowers("positions", "alternet18", relative)),
    Statement("MLPs raise it", "variance", others_raise("positions", "vit6", relative)),
    Statement("convolutions raise it", "variance", others_raise("positions", "preresnet18", relative)),
    Statement(
        "a ViT loses less by noise of high frequency than the ResNet",
        "robustness",
        noise("vit6", "preresnet18", HIGH_BAND),
    ),
    Statement("and more by noise of low frequency", "robustness", noise("preresnet18", "vit6", LOW_BAND)),
    Statement(
        "AlterNet loses less by corruptions than the ResNet", "robustness", corruption("alternet18", "preresnet18")
    ),
)
