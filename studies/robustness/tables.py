"""The tables of docs/studies/robustness, from the reports of its runs."""

import json
import statistics
from collections.abc import Iterable
from functools import partial
from typing import Any

from steadyseg.studies.harness.rows import Row, has_temperature, title_of
from steadyseg.studies.harness.study import PAGES
from steadyseg.studies.harness.tables import Tables, bind, table
from steadyseg.studies.robustness.report import stream_gain
from steadyseg.studies.robustness.runs import CALIBRATED, GROUPS, REPEATED_SEVERITY, SEEDS
from steadyseg.studies.robustness.seed_tables import corruption_mean, seeds_table, stream_table, success

Reports = dict[str, dict[str, Any]]
"""By name of the run."""
PAGE = PAGES / "robustness"
NETWORKS = {
    "cifar10-resnet18-plain dnn": "classifiers",
    "cifar10-resnet18-mc-smooth dnn": "classifiers",
    "cifar10-resnet18-mc-smooth bnn x5": "classifiers",
    "paper-plain-0 dnn": "segmentation",
    "paper-smooth-0 dnn": "segmentation",
    "camvid-unet-s dnn": "camvid-unet-s",
}
"""The networks and methods that the page compares, each with the run that measured it with all severities."""
PLAIN = {"classifiers": "cifar10-resnet18-plain dnn", "segmentation": "paper-plain-0 dnn"}
KINDS = {
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "gaussian_blur"),
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"),
    "elastic, pixelate, spatter": ("elastic_transform", "pixelate", "spatter"),
}
"""Kinds of corruption among the 19 types."""
NOISE = ("gaussian_noise", "impulse_noise")
"""The types of the stream that are drawn anew in every frame."""


def tables() -> Tables:
    """The tables by their names in the page."""
    reports = {path.parent.name: json.loads(path.read_text()) for path in PAGE.glob("*/report.json")}
    makers = {
        "means": means_table,
        "kinds": kinds_table,
        "attacks": attacks_table,
        "bands": bands_table,
        "stream_changes": stream_changes,
        "ood": ood_table,
        "temperatures": temperatures_table,
        "reports": reports_table,
    }
    seeds = {
        f"{group.name}_seeds": partial(seeds_table, [reports[group.run_name(seed)] for seed in SEEDS])
        for group in GROUPS
        if group.repeated
    }
    stream = [reports[GROUPS[1].run_name(seed)] for seed in SEEDS]
    return {
        **bind(reports, makers),
        **seeds,
        "stream_clean": partial(stream_table, stream[:1], 0),
        "stream_corrupted": partial(stream_table, stream, REPEATED_SEVERITY),
    }


def row_of(rows: Iterable[Row], title: str) -> Row:
    return next(row for row in rows if title_of(row) == title)


def share(value: float) -> str:
    return f"{100 * value:.1f}"


def means_table(reports: Reports) -> str:
    """Clean pictures, the mean over the 15 types that count and all severities, and consistency under small changes."""
    lines = []
    for title, run in NETWORKS.items():
        studies = reports[run]["studies"]
        clean, mean = (row_of(studies["corruptions"][key], title) for key in ("clean", "means"))
        against = row_of(studies["corruptions"]["means"], PLAIN.get(run, title))
        worse = [
            f"{sum(mean['types'][name][key] > found[key] for name, found in against['types'].items())} of "
            f"{len(mean['types'])}"
            for key in ("nll", "ece")
        ]
        lines.append(
            [
                title,
                share(clean["accuracy"]),
                f"{clean['nll']:.2f}",
                share(1 - mean["mean_error"]),
                f"{mean['mean_nll']:.2f}",
                share(mean["mean_ece"]),
                *(worse if against is not mean else ("", "")),
                share(row_of(studies["perturbations"]["means"], title)["consistency"]),
            ]
        )
    titles = ("accuracy", "NLL", "corrupted accuracy", "NLL", "ECE", "types with a higher NLL", "ECE", "consistency")
    return table(["network", *titles], lines)


def kinds_table(reports: Reports) -> str:
    """NLL and ECE by kind of corruption, mean over its types and all severities."""
    lines = []
    for title, run in NETWORKS.items():
        types = row_of(reports[run]["studies"]["corruptions"]["means"], title)["types"]
        cells = [
            form(statistics.fmean(types[name][key] for name in names))
            for names in (*KINDS.values(), KINDS["noise"][:3])
            for key, form in (("nll", "{:.2f}".format), ("ece", share))
        ]
        lines.append([title, *cells])
    kinds = (*KINDS, "noise without speckle")
    return table(["network", *(f"{kind}: {key}" for kind in kinds for key in ("NLL", "ECE"))], lines)


def attacks_table(reports: Reports) -> str:
    """Change of the success rate by smoothing, in points, seed by seed."""
    pairs = (
        ("classifiers", "cifar10-resnet18-mc-smooth bnn x5", "MC dropout + smoothing, five passes"),
        ("segmentation", "paper-smooth-0 dnn", "smoothing alone"),
    )
    lines = []
    for run, title, words in pairs:
        for attack in ("fgsm", "pgd"):
            records = [reports[f"{run}-seed{seed}" if seed else run] for seed in SEEDS]
            rates = [[success(record, one, attack) or 0.0 for one in (PLAIN[run], title)] for record in records]
            lines.append([run, words, attack.upper(), *(f"{100 * (after - before):+.1f}" for before, after in rates)])
    return table(["networks", "what differs", "attack", *(f"seed {seed}" for seed in SEEDS)], lines)


def bands_table(reports: Reports) -> str:
    """Accuracy lost to the strongest noise and attack in each band of frequencies, mean over the seeds."""
    lines = []
    for title, run in NETWORKS.items():
        records = [reports[name] for name in (run, *(f"{run}-seed{seed}" for seed in SEEDS[1:])) if name in reports]
        rows = [row for one in records for row in one["studies"].get("bands", {}).get("rows", ())]
        for strength, words in (("noise_rms", "noise"), ("eps_levels", "PGD")):
            mine = [row for row in rows if title_of(row) == title and row[strength]]
            strongest = [row for row in mine if row[strength] == max(one[strength] for one in mine)]
            drops = [
                statistics.fmean(row["accuracy_drop"] for row in strongest if round(10 * row["centre"]) == tenth)
                for tenth in range(1, 10)
                if mine
            ]
            if drops:
                lines.append([title, words, *map(share, drops)])
    return table(["network", "limited to a band", *(f"{tenth / 10:g} pi" for tenth in range(1, 10))], lines)


def stream_changes(reports: Reports) -> str:
    """Change by averaging over time against single frames: least to most over the types and severities."""
    lines = []
    for title in ("paper-plain-0", "paper-smooth-0", "camvid-unet-s"):
        study = reports[next(run for name, run in NETWORKS.items() if name.startswith(title))]["studies"]["stream"]
        for way in ("vq-dnn window 5, tau 1.25", "vq-dnn motion, tau 8"):
            cells = [
                span(study, f"{title} {way}", *wanted)
                for wanted in (
                    ("nll", ("",), (0,)),
                    ("nll", NOISE, study["severities"]),
                    ("nll", NOISE, (5,)),
                    ("nll", ("snow",), (3, 5)),
                    ("accuracy", NOISE, study["severities"]),
                    ("accuracy", ("snow",), study["severities"]),
                )
            ]
            lines.append([f"{title} {way}", *cells])
    header = ["NLL: clean", "noise", "noise, severity 5", "snow, severity 3 and 5", "accuracy, points: noise", "snow"]
    return table(["network and method", *header], lines)


def span(study: dict[str, Any], title: str, key: str, types: Iterable[str], severities: Iterable[int]) -> str:
    gains = (stream_gain(study, title, severity, key, name) for name in types for severity in severities)
    values = sorted(gain for gain in gains if gain is not None)
    told = [f"{value:+.2f}" if key == "nll" else f"{100 * value:+.1f}" for value in (values[0], values[-1])]
    return " to ".join(dict.fromkeys(told))


def ood_table(reports: Reports) -> str:
    """Motorway clips against stills of CamVid: AUROC of each score, and its mean on both."""
    scores = [
        ("camvid-unet-s dnn", "novelty"),
        ("camvid-unet-s dnn", "entropy"),
        ("camvid-unet-s dnn", "aps"),
        ("camvid-unet-s dnn", "lac"),
        ("camvid-unet-s bnn x10", "disagreement"),
        ("camvid-unet-s dnn", "reported_pedestrian"),
        ("paper-plain-0 dnn", "entropy"),
        ("paper-smooth-0 dnn", "entropy"),
    ]
    rows = [row for run in ("camvid-unet-s", "segmentation") for row in reports[run]["studies"]["ood"]["rows"]]
    lines = []
    for title, score in scores:
        row = next(row for row in rows if title_of(row) == title and row["score"] == score)
        told = [f"{row[key]:.3f}" for key in ("mean_data", "mean_ood")]
        lines.append([title, score.replace("_", " "), f"{row['auroc']:.2f}", *told])
    return table(["network", "score", "AUROC", "mean, CamVid", "mean, motorway"], lines)


def temperatures_table(reports: Reports) -> str:
    """The same corruptions at temperature 1 and with the temperature that a checkpoint has for the method."""
    lines = []
    for title, run in NETWORKS.items():
        fitted = CALIBRATED if run == "classifiers" else run
        clean = row_of(reports[fitted]["studies"]["corruptions"]["clean"], title)
        has_fit = has_temperature(reports[fitted], clean)
        shown = [reports[run] if run != "camvid-unet-s" else None, reports[fitted] if has_fit else None]
        cells = [format_means(record, title) for record in shown]
        cleans = [clean[key] if has_fit else None for key in ("accuracy", "nll", "ece")]
        lines.append([title, *(cell for part in cells for cell in part), *map(digits, cleans)])
    parts = ("temperature 1", "fitted")
    columns = [f"{part}: {key}" for part in parts for key in ("accuracy", "NLL", "ECE")]
    return table(["network", *columns, "fitted, clean: accuracy", "NLL", "ECE"], lines)


def format_means(record: dict[str, Any] | None, title: str) -> list[str]:
    return [digits(corruption_mean(record, title, key) if record else None) for key in ("accuracy", "nll", "ece")]


def digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def reports_table(reports: Reports) -> str:
    """Each run with the command that makes it, and what it took."""
    lines = []
    for name in [*(group.name for group in GROUPS), CALIBRATED]:
        record = reports[name]
        took = f"{record['seconds'] / 60:.0f} minutes, threads: {record['threads']}"
        lines.append([f"[{name}]({name})", took, f"`{record['command']}`"])
    return table(["report", "took", "made by"], lines)
