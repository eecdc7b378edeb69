"""The tables of the robustness studies, their report as Markdown, and its summary."""

from collections.abc import Callable
from typing import Any

from rich.table import Table as ScreenTable

from steadyseg.core.evaluation.figures import mean_of_known
from steadyseg.studies.harness.report_folder import Table, report_tables
from steadyseg.studies.harness.tables import bullets, figure, paragraphs
from steadyseg.studies.robustness.tally import Row, title_of, titles_of

MEASURES = {"accuracy": "accuracy", "nll": "NLL", "ece": "ECE", "miou": "mIoU"}


def markdown(record: dict[str, Any], command: str) -> str:
    """The whole report."""
    studies = record["studies"]
    models = ", ".join(model["model"] for model in record["models"])
    parts = [
        f"# Robustness of {models}",
        f"`{command}`",
        f"{record['pictures']} pictures of {record['data']} {record['split']} (list {record['list_hash']}), seed "
        f"{record['seed']}, {record['device']}, {record['seconds']:.0f} s. `dnn` is one pass with dropout off, `bnn "
        "xN` the mean of N dropout passes. Fractions in 0..1, NLL in nats.",
        bullets(record["notes"]),
    ]
    for name, (title, tables, form) in SECTIONS.items():
        if name in studies:
            study = studies[name]
            parts += [f"## {title}", f"{study['seconds']:.0f} s.", *report_tables(tables(study), form)]
            parts.append(bullets(study["notes"]))
    return paragraphs(parts)


def corruptions(study: dict[str, Any]) -> list[Table]:
    """Means, then type by type."""
    words = {key: word for key, word in MEASURES.items() if key in study["clean"][0]}
    columns = ["network", *(f"{kind} {word}" for kind in ("clean", "corrupted") for word in words.values())]
    rows = [
        [title_of(clean), *(clean[key] for key in words), *(of_mean(row, key, "mean_") for key in words)]
        for clean, row in zip(study["clean"], study["means"], strict=True)
    ]
    found: list[Table] = [("", columns, rows)]
    titles = titles_of(study["means"])
    severities = ", ".join(map(str, study["severities"]))
    for key, word in words.items():
        title = f"{'Accuracy' if key == 'accuracy' else word} by type, mean over severities {severities}:"
        lines = [[name, *(of_mean(row["types"][name], key) for row in study["means"])] for name in study["types"]]
        found.append((title, ["type", *titles], lines))
    return found


def of_mean(row: Row, key: str, prefix: str = "") -> float | None:
    """A mean of a row; accuracy is 1 - the recorded error."""
    if key != "accuracy":
        return row[f"{prefix}{key}"]
    error: float | None = row[f"{prefix}error"]
    return None if error is None else 1.0 - error


def stream(study: dict[str, Any]) -> list[Table]:
    """Every method by severity, then the gain by averaging over time, type by type."""
    levels = [0, *study["severities"]]
    headings = ["clean", *(f"severity {level}" for level in levels[1:])]
    groups = list(dict.fromkeys(map(stream_title, study["rows"])))
    found: list[Table] = []
    for key, word in (("accuracy", "Accuracy"), ("nll", "NLL"), ("ece", "ECE"), ("consistency", "Consistency")):
        lines = [[title, *(stream_mean(study, title, level, key) for level in levels)] for title in groups]
        found.append((f"{word}, mean over types:", ["network", *headings], lines))
    for key, word in (("accuracy", "Accuracy"), ("nll", "NLL")):
        lines = [
            [title, name, *(stream_gain(study, title, level, key, name) for level in levels)]
            for title in groups
            if " vq-" in title
            for name in study["types"]
        ]
        found.append((f"{word} minus that of dnn, type by type:", ["network", "type", *headings], lines))
    return found


def stream_mean(study: dict[str, Any], title: str, severity: int, key: str, name: str = "") -> float | None:
    """Mean of a method at a severity: of one type, or over all; severity 0 is clean, whatever the type."""
    mine = [row for row in study["rows"] if stream_title(row) == title and row["severity"] == severity]
    return mean_of_known([row[key] for row in mine if not severity or name in ("", row["type"])])


def stream_gain(study: dict[str, Any], title: str, severity: int, key: str, name: str = "") -> float | None:
    """Difference between a method that averages over time and its network's single frames."""
    base = f"{title.partition(' vq-')[0]} dnn"
    ours, theirs = (stream_mean(study, method, severity, key, name) for method in (title, base))
    return None if ours is None or theirs is None else ours - theirs


def stream_title(row: Row) -> str:
    """The network and its memory."""
    if row["tau"] is None:
        return f"{row['model']} {row['mode']}"
    memory = "motion" if row["motion"] else f"window {row['window']}"
    return f"{row['model']} {row['mode']} {memory}, tau {row['tau']:g}"


def perturbations(study: dict[str, Any]) -> list[Table]:
    """Means, then perturbation by perturbation."""
    keys = {
        "consistency": "consistency",
        "cec": "CEC (paper)",
        "cec_reference": "CEC (code)",
        "relative_confidence": "relative confidence",
    }
    rows = [[title_of(row), *(row[key] for key in keys)] for row in study["means"]]
    lines = [
        [name, *(row["consistency"] for row in study["rows"] if row["perturbation"] == name)]
        for name in study["perturbations"]
    ]
    return [
        ("", ["network, mean over perturbations", *keys.values()], rows),
        ("Consistency by perturbation:", ["perturbation", *titles_of(study["rows"])], lines),
    ]


def attacks(study: dict[str, Any]) -> list[Table]:
    columns = ["network", "attack", "budget", "clean accuracy", "attacked accuracy", "attack success rate"]
    keys = ("clean_accuracy", "attacked_accuracy", "attack_success_rate")
    rows = [
        [title_of(row), row["attack"], f"{row['eps_levels']:g}/255", *(row[key] for key in keys)]
        for row in study["rows"]
    ]
    return [("", columns, rows)]


def bands(study: dict[str, Any]) -> list[Table]:
    """The drop in accuracy in each band."""
    centres = list(dict.fromkeys(row["centre"] for row in study["rows"]))
    lines = []
    for kind in band_kinds(study):
        for title in titles_of(study["rows"]):
            mine = [row for row in study["rows"] if band_kind(row) == kind and title_of(row) == title]
            lines.append([f"{title}, {kind}", *(row["accuracy_drop"] for row in mine)])
    title = "Drop in accuracy by the centre of the band, in units of pi:"
    return [(title, ["network", *(f"{centre:g}" for centre in centres)], lines)]


def band_kind(row: Row) -> str:
    """Kind of the noise that was added to the pictures."""
    levels = row["eps_levels"]
    return f"noise {row['noise_rms']:g}" if levels is None else f"PGD {levels:g}/255"


def band_kinds(study: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(map(band_kind, study["rows"])))


def ood(study: dict[str, Any]) -> list[Table]:
    rows = [[title_of(row), row["score"], row["mean_data"], row["mean_ood"], row["auroc"]] for row in study["rows"]]
    title = f"{study['pictures']} pictures against {study['ood_pictures']} from {', '.join(study['sources'])}"
    return [(title, ["network", "score", "mean, data", "mean, OOD", "AUROC"], rows)]


SECTIONS: dict[str, tuple[str, Callable[[dict[str, Any]], list[Table]], str]] = {
    "corruptions": ("Corruptions", corruptions, ".3f"),
    "stream": ("Stream", stream, ".3f"),
    "perturbations": ("Perturbation sequences", perturbations, ".4f"),
    "attacks": ("Attacks", attacks, ".3f"),
    "bands": ("Bands of frequency", bands, ".3f"),
    "ood": ("Out-of-distribution pictures", ood, ".3f"),
}
"""Study -> title of its section, its tables, form of their numbers."""


def summary(record: dict[str, Any]) -> ScreenTable:
    """A column for each network and method: the figures to look at first."""
    studies = record["studies"]
    lines: dict[str, dict[str, Any]] = {}

    def note(row: Row, name: str, value: Any) -> None:
        lines.setdefault(title_of(row), {})[name] = value

    if found := studies.get("corruptions"):
        for clean, mean_row in zip(found["clean"], found["means"], strict=True):
            note(clean, "accuracy", clean["accuracy"])
            note(clean, "corrupted accuracy", of_mean(mean_row, "accuracy", "mean_"))
            note(clean, "NLL", clean["nll"])
            note(clean, "corrupted NLL", mean_row["mean_nll"])
    for row in studies.get("perturbations", {}).get("means", ()):
        note(row, "consistency", row["consistency"])
    for row in studies.get("attacks", {}).get("rows", ()):
        note(row, f"{row['attack']} {row['eps_levels']:g}/255 succeeds", row["attack_success_rate"])
    for row in studies.get("ood", {}).get("rows", ()):
        if row["score"] in ("entropy", "disagreement"):
            note(row, f"AUROC {row['score']}", row["auroc"])
    figures = list(dict.fromkeys(name for values in lines.values() for name in values))
    made = ScreenTable("", *lines, title=f"{record['data']} {record['split']}", title_justify="left")
    for name in figures:
        made.add_row(name, *(figure(values.get(name), ".3f") for values in lines.values()))
    return made
