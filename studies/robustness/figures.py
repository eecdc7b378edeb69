"""Figures named in the sentences of findings.md, from the reports: {KIND/.../NETWORK}, NLL as it is and shares in
percent.

{clean/nll/paper-plain} {mean/ece/paper-plain}      on clean pictures; mean over the 15 common types
{types/nll/snow|fog/paper-plain}                    mean over these types
{worse/nll/paper-plain/paper-smooth}                in how many types the second has the higher: "9 of 19"
{success/fgsm/plain} {success/fgsm/plain/mc-smooth} attack success by seed; the change from one network to the other
{consistency/plain}                                 under small changes
{band/noise_rms/plain/3-5}                          accuracy lost to the strongest in bands 0.3 to 0.5 pi, mean over
seeds {stream/nll/paper-plain vq-dnn window 5, tau 1.25/snow|fog/1-5}   along the stream; {gain/...} against its single
frames {ood/auroc/lac/unet-s} {calibrated/nll/plain}       OOD clips; corruptions with the fitted
temperatures
"""

import statistics
from collections.abc import Iterable
from typing import Any

from studies.harness.document import span
from studies.harness.rows import title_of
from studies.robustness.report import stream_gain, stream_mean
from studies.robustness.runs import CALIBRATED, REPEATED_SEVERITY, SEEDS

Reports = dict[str, dict[str, Any]]
"""By name of the run."""
NETWORKS = {
    "plain": ("classifiers", "cifar10-resnet18-plain dnn"),
    "mc-smooth": ("classifiers", "cifar10-resnet18-mc-smooth dnn"),
    "mc-smooth x5": ("classifiers", "cifar10-resnet18-mc-smooth bnn x5"),
    "paper-plain": ("segmentation", "paper-plain-0 dnn"),
    "paper-smooth": ("segmentation", "paper-smooth-0 dnn"),
    "unet-s": ("camvid-unet-s", "camvid-unet-s dnn"),
    "unet-s x10": ("camvid-unet-s", "camvid-unet-s bnn x10"),
}


def figure(reports: Reports, name: str) -> str:
    """The text of one {name}."""
    kind, *rest = name.split("/")
    return KINDS[kind](reports, *rest)


def clean(reports: Reports, key: str, network: str) -> str:
    run, title = NETWORKS[network]
    return told(key, [row_of(reports[run]["studies"]["corruptions"]["clean"], title)[key]])


def mean(reports: Reports, key: str, network: str) -> str:
    run, title = NETWORKS[network]
    found = row_of(reports[run]["studies"]["corruptions"]["means"], title)
    return told(key, [1.0 - found["mean_error"] if key == "accuracy" else found[f"mean_{key}"]])


def types(reports: Reports, key: str, names: str, network: str) -> str:
    found = types_of(reports, network)
    return told(key, [of_type(found[name], key) for name in names.split("|")], statistics.fmean)


def worse(reports: Reports, key: str, base: str, other: str) -> str:
    before, after = (types_of(reports, network) for network in (base, other))
    return f"{sum(after[name][key] > before[name][key] for name in before)} of {len(before)}"


def success(reports: Reports, attack: str, network: str, other: str = "") -> str:
    """One network: least to most over the seeds. Two: the change in each seed, in points."""
    run = NETWORKS[network][0]
    studies = [reports[f"{run}-seed{seed}" if seed else run]["studies"]["attacks"]["rows"] for seed in SEEDS]

    def rates(one: str) -> list[float]:
        mine = [
            [row for row in rows if row["attack"] == attack and title_of(row) == NETWORKS[one][1]] for rows in studies
        ]
        return [rows[0]["attack_success_rate"] for rows in mine]

    if not other:
        return told("", rates(network))
    return ", ".join(f"{100 * (b - a):+.1f}" for a, b in zip(rates(network), rates(other), strict=True))


def consistency(reports: Reports, network: str) -> str:
    run, title = NETWORKS[network]
    return told("", [row_of(reports[run]["studies"]["perturbations"]["means"], title)["consistency"]])


def band(reports: Reports, strength: str, network: str, tenths: str) -> str:
    """Least to most over the bands."""
    run, title = NETWORKS[network]
    records = [
        reports[name]
        for name in (run, *(f"{run}-seed{seed}" for seed in SEEDS[1:]))
        if "bands" in reports[name]["studies"]
    ]
    rows = [
        row for one in records for row in one["studies"]["bands"]["rows"] if title_of(row) == title and row[strength]
    ]
    strongest = max(row[strength] for row in rows)
    first, last = (int(tenth) for tenth in tenths.split("-"))
    drops = [
        statistics.fmean(
            row["accuracy_drop"] for row in rows if row[strength] == strongest and round(10 * row["centre"]) == tenth
        )
        for tenth in range(first, last + 1)
    ]
    return told("", drops)


def stream(reports: Reports, key: str, way: str, names: str, severities: str) -> str:
    return along(reports, stream_mean, key, way, names, severities)


def gain(reports: Reports, key: str, way: str, names: str, severities: str) -> str:
    return along(reports, stream_gain, key, way, names, severities)


def along(reports: Reports, read: Any, key: str, way: str, names: str, severities: str) -> str:
    """Least to most over the types and severities; severity 0 is the clean stream, all: the mean over types."""
    network, _, memory = way.partition(" ")
    run, title = NETWORKS[network]
    found = reports[run]["studies"]["stream"]
    first, _, last = severities.partition("-")
    levels = [level for level in (0, *found["severities"]) if int(first) <= level <= int(last or first)]
    title = f"{title.removesuffix(' dnn')} {memory}" if memory else title
    values = [
        read(found, title, level, key, "" if name == "all" else name) for name in names.split("|") for level in levels
    ]
    return told(key, values, signed=read is stream_gain)


def ood(reports: Reports, what: str, score: str, network: str) -> str:
    run, title = NETWORKS[network]
    rows = reports[run]["studies"]["ood"]["rows"]
    value = next(row for row in rows if title_of(row) == title and row["score"] == score)[what]
    return f"{value:.2f}" if what == "auroc" else told("", [value])


def calibrated(reports: Reports, key: str, network: str) -> str:
    return at_repeated(reports[CALIBRATED], key, NETWORKS[network][1])


def uncalibrated(reports: Reports, key: str, network: str) -> str:
    run, title = NETWORKS[network]
    return at_repeated(reports[run], key, title)


def at_repeated(report: dict[str, Any], key: str, title: str) -> str:
    """Mean over types at the severity that all runs have."""
    rows = report["studies"]["corruptions"]["rows"]
    values = [row[key] for row in rows if title_of(row) == title and row["severity"] == REPEATED_SEVERITY]
    return told(key, values, statistics.fmean)


KINDS = {
    one.__name__: one
    for one in (clean, mean, types, worse, success, consistency, band, stream, gain, ood, calibrated, uncalibrated)
}


def types_of(reports: Reports, network: str) -> dict[str, dict[str, Any]]:
    run, title = NETWORKS[network]
    return dict(row_of(reports[run]["studies"]["corruptions"]["means"], title)["types"])


def of_type(found: dict[str, Any], key: str) -> float:
    return float(1.0 - found["error"] if key == "accuracy" else found[key])


def row_of(rows: Iterable[dict[str, Any]], title: str) -> dict[str, Any]:
    return next(row for row in rows if title_of(row) == title)


def told(key: str, values: list[float], of: Any = None, signed: bool = False) -> str:
    """NLL with two digits, shares in percent; least to most, or what `of` makes of them."""
    form, scale = ("+" if signed else "") + (".2f" if key == "nll" else ".1f"), 1.0 if key == "nll" else 100.0
    return span([f"{scale * value:{form}}" for value in ([of(values)] if of else values)])
