"""The tables of docs/studies/results, from its record."""

from collections.abc import Callable
from functools import partial

from steadyseg.studies.harness.tables import Tables, bind, read_record, table
from steadyseg.studies.results.again import again_table
from steadyseg.studies.results.cells import (
    TITLES,
    TITLES_SHOWN,
    Rows,
    cell,
    change,
    format_row,
    mark_columns,
    row_at,
)
from steadyseg.studies.results.findings_tables import findings_table, neighbours_table, rule_table, spread_table
from steadyseg.studies.results.matrix import CONTROL, MEMBERS, Network
from steadyseg.studies.results.protocol import protocol_table, published_rows_table
from steadyseg.studies.results.published_tables import (
    effects_table,
    passes_table,
    published_effects_table,
    throughput_table,
    vqbnn_table,
)


def tables() -> Tables:
    """The tables by their names in the page."""
    rows = read_record("results")
    makers: dict[str, Callable[[Rows], str]] = {
        "rule": rule_table,
        "effects": effects_table,
        "vqbnn": vqbnn_table,
        "passes": passes_table,
        "ensemble": ensemble_table,
        "seeds": seeds_table,
        "control": control_table,
        "findings": findings_table,
        "spread": spread_table,
        "neighbours": neighbours_table,
    }
    published = ("stream", "moving-stills")
    return {
        **bind(rows, makers),
        "protocol": protocol_table,
        "again": again_table,
        "published_rows": published_rows_table,
        **{f"published_effects_{name}": partial(published_effects_table, rows, name) for name in published},
        **bind(read_record("results", "throughput.json"), {"throughput": throughput_table}),
        **bind(read_record("results", "vector-scaling.json"), {"scaling": scaling_table}),
    }


def ensemble_table(rows: Rows) -> str:
    names = ("ensemble", "vq-ensemble", "ensemble calibrated", "vq-ensemble calibrated")
    lines = [
        [protocol, name, *format_row(found)]
        for protocol in TITLES
        for name in names
        if (found := row_at(rows, "paper-ensemble", protocol, name))
    ]
    return table(["protocol", "row", *TITLES_SHOWN], lines)


def seeds_table(rows: Rows) -> str:
    """Spread of trainings that differ in their seed alone, and the effect of temporal smoothing on each."""
    lines = []
    for protocol in ("stream", "stills"):
        for name in ("dnn", "vq-dnn", "vq-dnn motion"):
            for network in MEMBERS:
                found, single = (row_at(rows, network.name, protocol, row) for row in (name, "dnn"))
                if found:
                    lines.append([protocol, name, str(network.seed), *format_row(found), change(found, single)])
    return table(["protocol", "row", "seed", *TITLES_SHOWN, "NLL change"], lines)


def control_table(rows: Rows) -> str:
    """One training with and without the stills nearest in time to the val stream."""
    whole = Network("paper", True, True)
    lines = []
    for name in ("dnn", "bnn-30", "vq-dnn", "vq-dnn motion", "vq-bnn", "vq-bnn motion"):
        without, with_all = (row_at(rows, network.name, "stream", name) for network in (CONTROL, whole))
        if without and with_all:
            lines.append([name, *format_row(with_all), *format_row(without), change(without, with_all)])
    header = ["row", *TITLES_SHOWN, *mark_columns("without", TITLES_SHOWN), "NLL change"]
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
