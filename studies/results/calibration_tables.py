"""The tables of what is fitted or undone after a training: temperatures, class weights, prediction sets."""

from steadyseg.studies.harness.tables import table
from steadyseg.studies.results.cells import (
    Rows,
    cell,
    format_row,
)

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
