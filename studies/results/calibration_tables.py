"""The tables of what is fitted or undone after a training: temperatures, class weights, prediction sets."""

from steadyseg.studies.harness.tables import table
from steadyseg.studies.results.cells import (
    TITLES,
    TITLES_SHOWN,
    Rows,
    cell,
    change,
    each_row,
    format_row,
    mark_columns,
    row_at,
)
from steadyseg.studies.results.matrix import COMPARED
from steadyseg.studies.results.rows import FITTED_ON


def calibration_table(rows: Rows) -> str:
    """Before and after the temperature that was fitted on the other split."""
    lines = []
    for job, protocol, name, after in each_row(rows):
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
    header = "network, protocol, row, fitted on, T, NLL, ECE, ECE-15, after: NLL, ECE, ECE-15, acc".split(", ")
    return table(header, lines)


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
    return table(header, lines)


SCALINGS = {
    "none": "as trained",
    "temperature": "temperature",
    "vector": "vector scaling",
    "weights undone": "weights undone",
}


def scaling_table(record: Rows) -> str:
    """One temperature, a scale and shift for each class, or the class weights of the loss taken back."""
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
    header = ["network", "measured on", "scaling", "NLL", "acc", "mIoU", "ECE", "Pedestrian recall"]
    return table(header, lines)


def sets_table(rows: Rows) -> str:
    """Coverage and size of the prediction sets, and what the class whose misses are bounded missed."""
    lines = []
    for job, protocol, name, found in each_row(rows):
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
            lines.append([job, protocol, name, kind.upper(), *shares, recordings, f"{one['set_size']:.2f}", *missed])
    header = (
        "network, protocol, row, sets, pixels covered, images: mean, 5th percentile, least, by recording, classes"
        " a set, Pedestrian missed, pixels reported as one"
    ).split(", ")
    return table(header, lines)
