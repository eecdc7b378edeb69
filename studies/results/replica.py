"""Table 2 of arXiv 2105.12639 beside our trainings: every reading of it, and the trainings of 130 epochs row by row.

    python -m steadyseg.studies.papers 130-epochs --device cpu --data data --out OUT

Its OUT/130-epochs.json is docs/records/results/replica.json, and OUT/unseen-drive.json of the row `unseen-drive` is
unseen-drive.json there. Seventy and 22 minutes of one core a training.
"""

from itertools import product
from typing import Any

from steadyseg.studies.harness.tables import read_record, table

SHARES = ("accuracy", "ece", "consistency")
PUBLISHED = {
    "plain dnn": (0.354, 92.3, 4.95, 95.1),
    "smooth dnn": (0.318, 92.4, 4.54, 95.5),
    "plain vq-dnn": (0.290, 92.5, 3.18, 96.3),
    "smooth vq-dnn": (0.278, 92.5, 3.03, 96.6),
    "mc bnn": (0.298, 92.5, 4.20, 95.4),
    "mc-smooth bnn": (0.284, 92.6, 3.96, 95.6),
    "mc vq-bnn": (0.273, 92.6, 3.23, 96.4),
    "mc-smooth vq-bnn": (0.260, 92.6, 2.71, 96.5),
}
"""NLL, and SHARES in percent, of arXiv 2105.12639, Table 2 and E.4; the mean has tau 1.25 frames at 30 Hz."""
WITHIN = "both smoothings within MC dropout (Table 2)"
READINGS = {
    WITHIN: ("mc bnn", "mc-smooth vq-bnn"),
    "both smoothings without dropout": ("plain dnn", "smooth vq-dnn"),
    "temporal smoothing alone": ("plain dnn", "plain vq-dnn"),
    "temporal smoothing within MC dropout": ("mc bnn", "mc vq-bnn"),
    "spatial smoothing alone": ("plain dnn", "smooth dnn"),
    "spatial smoothing within MC dropout": ("mc bnn", "mc-smooth bnn"),
    "MC dropout alone": ("plain dnn", "mc bnn"),
    "all three against the plain network (Table E.4)": ("plain dnn", "mc-smooth vq-bnn"),
}
"""By reading the two rows that it compares, each as form and mode."""
WITH_SHARES = (WITHIN, "all three against the plain network (Table E.4)")
FORMS, SEEDS = ("plain", "smooth", "mc", "mc-smooth"), (0, 1)
"""As studies.papers trains them."""
LONG = {"replica": "replica180", "unseen-drive": "unseen180"}
"""By record the names of its trainings of 130 epochs, without form and seed."""
HEADER = ["frames", "network", "seed", "method", "tau", "NLL", "accuracy, %", "mIoU, %", "ECE, %", "consistency, %"]


def readings_table() -> str:
    """The change by each reading: NLL in percent, shares in points; a dash where a training is missing."""
    lines = []
    for reading, (before, after) in READINGS.items():
        keys = ("nll", *SHARES) if reading in WITH_SHARES else ("nll",)
        lines += [changes(reading, "stream", before, after, key) for key in keys]
    lines.append(changes("30 passes and spatial smoothing, test stills", "stills", "plain dnn", "mc-smooth bnn", "nll"))
    lines.append(changes("no method, one fitted temperature", "stream", "plain dnn", "plain dnn calibrated", "nll"))
    header = ["reading", "of", "published", "replica, 40 epochs", "own recipe, 40 epochs", "replica, 130 epochs"]
    header.append("the same, val's drive not in training: two seeds")
    return table(header, lines)


def changes(reading: str, protocol: str, before: str, after: str, key: str) -> list[str]:
    """A line of the readings: the change of a metric from one row to another, published and in each of our recipes."""
    short = read_record("results")
    published = {name: dict(zip(("nll", *SHARES), row, strict=True)) for name, row in PUBLISHED.items()}
    sources = [published, *(short_rows(short, recipe, protocol) for recipe in ("paper", "cpu"))]
    longer = [long_rows("replica", 0, protocol), *(long_rows("unseen-drive", seed, protocol) for seed in SEEDS)]
    *cells, first, second = (change(one, before, after, key) for one in (*sources, *longer))
    unit = "NLL, %" if key == "nll" else f"{key.replace('ece', 'ECE')}, points"
    return [reading, unit, *cells, "-" if first == second == "-" else f"{first}, {second}"]


def short_rows(record: dict[str, Any], recipe: str, protocol: str) -> dict[str, dict[str, float]]:
    """The rows of seed 0 of a recipe by form and mode; a row of 30 passes is called bnn."""
    found = {}
    for form in FORMS:
        for mode, row in record[f"{recipe}-{form}-0"]["rows"][protocol].items():
            found[f"{form} {mode.replace('bnn-30', 'bnn')}"] = in_percent(row)
    return found


def long_rows(file: str, seed: int, protocol: str) -> dict[str, dict[str, float]]:
    """The same of the trainings of 130 epochs in a record, whose first mean has the published tau."""
    rows = [(form, row) for form in FORMS for row in rows_of(file, form, seed, protocol)]
    found = {f"{form} {row['mode']}": in_percent(row) for form, row in reversed(rows)}
    fitted = f"steadyseg evaluate {{runs}}/{LONG[file]}-plain-{seed}-fitted"  # by its command, as it has no training
    for name, row in read_record("results", f"{file}.json").items():
        if name.startswith(fitted):
            found["plain dnn calibrated"] = in_percent(row)
    return found


def in_percent(row: dict[str, Any]) -> dict[str, float]:
    return {"nll": row["nll"], **{key: 100 * (row[key] or 0.0) for key in SHARES}}


def change(rows: dict[str, dict[str, float]], before: str, after: str, key: str) -> str:
    if before not in rows or after not in rows:
        return "-"
    old, new = (rows[name][key] for name in (before, after))
    return f"{100 * (new / old - 1):+.1f}" if key == "nll" else f"{new - old:+.2f}"


def long_table(file: str) -> str:
    """Metrics by protocol, training and method, and the change of the NLL against the plain network's single frames."""
    lines = []
    for protocol, seed, name in product(("stream", "stills"), SEEDS, FORMS):
        for row in rows_of(file, name, seed, protocol):
            plain = rows_of(file, "plain", seed, protocol)[0]["nll"]
            published = PUBLISHED.get(f"{name} {row['mode']}") if protocol == "stream" else None
            changes = [row["nll"] / plain - 1, published and published[0] / PUBLISHED["plain dnn"][0] - 1]
            keys = ("accuracy", "miou", "ece", "consistency")
            shares = ("-" if row[key] is None else f"{100 * row[key]:.2f}" for key in keys)
            tau = str(row["tau"]) if row["mode"].startswith("vq") else "-"
            cells = ("-" if one is None else f"{100 * one:+.1f} %" for one in changes)
            lines.append([protocol, name, str(seed), row["mode"], tau, f"{row['nll']:.4f}", *shares, *cells])
    return table([*HEADER, "NLL against plain dnn", "published"], lines)


def rows_of(file: str, form: str, seed: int, protocol: str) -> list[dict[str, Any]]:
    """The evaluations of a training, single frames first; none of a training that has not been made."""
    record = read_record("results", f"{file}.json")
    rows = record.get(f"{LONG[file]}-{form}-{seed}", {"evaluations": ()})["evaluations"]
    return [row for row in rows if row["protocol"] == protocol]
