"""The tables of what is fitted or undone after a training: temperatures, class weights, prediction sets."""

import json
from pathlib import Path

from studies.harness.document import section, table
from studies.results.cells import (
    TITLES,
    TITLES_SHOWN,
    Rows,
    cell,
    change,
    format_row,
    mark_columns,
    row_at,
)
from studies.results.matrix import COMPARED
from studies.results.rows import FITTED_ON
from studies.results.rule_tables import labels_note


def calibration_table(rows: Rows) -> str:
    """Before and after the temperature that was fitted on the other split."""
    lines = []
    for job in rows:
        for protocol in TITLES:
            for name, after in rows[job]["rows"].get(protocol, {}).items():
                if not name.endswith(" calibrated"):
                    continue
                before = row_at(rows, job, protocol, name.removesuffix(" calibrated").removesuffix(" fitted memory"))
                lines.append(
                    [
                        job,
                        protocol,
                        name.removesuffix(" calibrated"),
                        FITTED_ON[protocol],
                        f"{after['temperature']:.3f}",
                        *format_row(before, ["nll", "ece", "ece_15"]),
                        *format_row(after, ["nll", "ece", "ece_15", "accuracy"]),
                    ]
                )
    header = [
        "network",
        "protocol",
        "row",
        "fitted on",
        "T",
        "NLL",
        "ECE",
        "ECE-15",
        "after: NLL",
        "ECE",
        "ECE-15",
        "acc",
    ]
    words = (
        "One temperature per network and mode, fitted with its smoothing switched on. `fitted memory`: tau "
        "chosen from 0.5 to "
        "3 by NLL on the same split as the temperature. It has no window to choose: what is older than K frames has "
        "exp(-(K + 1) / tau) of the weight, 0.8 % at the published K = 5 and tau = 1.25."
    )
    return section("Calibration", words, table(header, lines))


def class_weights_table(rows: Rows) -> str:
    """Each row as it comes, and with the class weights of its training undone."""
    lines = []
    for network in COMPARED:
        for protocol in TITLES:
            for name in ("dnn", "vq-dnn", "vq-dnn motion", "bnn-30", "vq-bnn", "vq-bnn motion"):
                before, after = (row_at(rows, network.name, protocol, name + end) for end in ("", " undone"))
                if before and after:
                    lines.append(
                        [network.name, protocol, name, *format_row(before), *format_row(after), change(after, before)]
                    )
    header = [
        "network",
        "protocol",
        "row",
        *TITLES_SHOWN,
        *mark_columns("undone", TITLES_SHOWN),
        "NLL change",
    ]
    words = (
        "A loss weighted by w teaches a network p w and not p. `undone`: log w is taken back from the "
        "logits, nothing is "
        "fitted (`steadyseg calibrate --logit-adjustment`). Temperature 1."
    )
    return section("What class weights do", words + labels_note(rows), table(header, lines))


SCALINGS = {
    "none": "as trained",
    "temperature": "temperature",
    "vector": "vector scaling",
    "weights undone": "weights undone",
}


def scaling_table(page: Path) -> str:
    """One temperature, a scale and shift for each class, or the class weights of the loss taken back."""
    path = page / "vector-scaling.json"
    record = json.loads(path.read_text()) if path.exists() else {}
    lines = [
        [
            model,
            split,
            meaning,
            *format_row(row, ["nll", "accuracy", "miou", "ece"]),
            cell("", row["pedestrian_recall"]),
        ]
        for model, found in record.items()
        for split, rows in found["rows"].items()
        for name, meaning in SCALINGS.items()
        if (row := rows.get(name))
    ]
    words = (
        "A loss weighted by w teaches a network p w and not p: too much of every rare class. Taking log w "
        "back from the logits "
        "needs no data; a temperature, or a scale and a shift for each class (*vector scaling*), is fitted "
        "on the other split. "
        "Single frames in fp32, every eighth row and column (`python -m studies.vector_scaling.measure`). Undoing the "
        "weights lowers the recall of rare classes, which is what the weights were for."
    )
    header = ["network", "measured on", "scaling", "NLL", "acc", "mIoU", "ECE", "Pedestrian recall"]
    return section("Class weights, and scaling by class", words, table(header, lines))


def sets_table(rows: Rows) -> str:
    """Coverage and size of the prediction sets, and what the class whose misses are bounded missed."""
    lines = []
    for job in rows:
        for protocol in TITLES:
            for name, found in rows[job]["rows"].get(protocol, {}).items():
                record = found.get("conformal")
                if not record:
                    continue
                risk = record["class_risk"]
                for kind in ("lac", "aps"):
                    one = record[kind]
                    kinds = ("coverage", "coverage_image_mean", "coverage_image_p5", "coverage_image_min")
                    shares = [cell("", one[key]) for key in kinds]
                    by = one["coverage_by_sequence"]
                    recordings = ", ".join(f"{label} {100 * share:.1f}" for label, share in by.items())
                    missed = [cell("", risk[key]) for key in ("risk", "reported_share")] if kind == "lac" else ["", ""]
                    lines.append(
                        [job, protocol, name, kind.upper(), *shares, recordings, f"{one['set_size']:.2f}", *missed]
                    )
    header = [
        "network",
        "protocol",
        "row",
        "sets",
        "pixels covered",
        "images: mean",
        "5th percentile",
        "least",
        "by recording",
        "classes a set",
        "Pedestrian missed",
        "pixels reported as one",
    ]
    words = (
        "Asked for: 90 % of the pixels, and at most 5 % of a Pedestrian's pixels missed on average over "
        "images; thresholds "
        "from the other split, temperature 1. Percent. The guarantee holds for exchangeable samples. Pixels "
        "of an image are "
        "not, and two drives are not: what came out is read per image and per recording."
    )
    return section("Prediction sets", words, table(header, lines))
