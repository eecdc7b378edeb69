"""The tables of docs/studies/results, from its record."""

from collections.abc import Callable
from functools import partial

from steadyseg.core.classes import CAMVID
from steadyseg.studies.harness.tables import Tables, bind, read_record, table
from steadyseg.studies.results.again import again_table
from steadyseg.studies.results.calibration_tables import (
    calibration_table,
    class_weights_table,
    scaling_table,
    sets_table,
)
from steadyseg.studies.results.cells import (
    ABSENT,
    TITLES,
    TITLES_SHOWN,
    Rows,
    cell,
    change,
    each_row,
    format_row,
    mark_columns,
    percent,
    row_at,
)
from steadyseg.studies.results.findings_tables import findings_table, neighbours_table, spread_table
from steadyseg.studies.results.matrix import COMPARED, CONTROL, MEMBERS, RECIPES, Network
from steadyseg.studies.results.protocol import protocol_table, published_rows_table
from steadyseg.studies.results.published_tables import (
    effects_table,
    passes_table,
    published_effects_table,
    throughput_table,
    vqbnn_table,
)
from steadyseg.studies.results.rule_tables import beyond_table, changes_table, rule_table


def tables() -> Tables:
    """The tables by their names in the page."""
    rows = read_record("results")
    makers: dict[str, Callable[[Rows], str]] = {
        "rule": rule_table,
        "changes": changes_table,
        "effects": effects_table,
        "vqbnn": vqbnn_table,
        "passes": passes_table,
        "beyond": beyond_table,
        "calibration": calibration_table,
        "class_weights": class_weights_table,
        "sets": sets_table,
        "ensemble": ensemble_table,
        "seeds": seeds_table,
        "control": control_table,
        "findings": findings_table,
        "spread": spread_table,
        "neighbours": neighbours_table,
        "ranking": ranking_table,
        "class": class_table,
        "commands": commands,
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


def ranking_table(rows: Rows) -> str:
    """Separation of right and wrong pixels by confidence."""
    lines = []
    for job, protocol, name, found in each_row(rows):
        if name.endswith("calibrated") or found.get("error_recall_10") is None:
            continue
        caught, ceiling = found["error_recall_10"], found["error_recall_10_ceiling"]
        shares = [cell("", share) for share in (caught, ceiling, caught / ceiling)]
        others = format_row(found, ["brier", "ece_signed", "acc_90", "iou_90", "unc_90", "freq_90"])
        lines.append([job, protocol, name, f"{found['aurc']:.4f}", *shares, *others])
    header = (
        "network, protocol, row, AURC, error recall in the least sure 10 %, ceiling, share of it, Brier, ECE+-, "
        "acc-90, IoU-90, unc-90, freq-90"
    ).split(", ")
    return table(header, lines)


def class_table(rows: Rows) -> str:
    """Per class: what smoothing over time gives and takes."""
    parts = []
    for recipe in RECIPES:
        job = Network(recipe, False, False).name
        for protocol in ("stream", "moving-stills"):
            methods = ("dnn", "vq-dnn", "vq-dnn motion")
            found = [row_at(rows, job, protocol, name) for name in methods]
            if not all(found):
                continue
            lines = [
                [name, *(percent(row[key][i]) for key in ("iou", "class_consistency") for row in found if row)]
                for i, name in enumerate(CAMVID.names)
            ]
            header = ["class", *(f"IoU {name}" for name in methods), *(f"cons {name}" for name in methods)]
            parts.append(f"`{job}`, {TITLES[protocol].lower()}:\n\n{table(header, lines)}")
    return "\n\n".join(parts)


def commands(rows: Rows) -> str:
    """Table of the command, digest and commit behind each network's rows."""
    lines = []
    for network in [*COMPARED, *MEMBERS[1:], CONTROL]:
        told = (str(rows.get(network.name, {}).get(key, ABSENT)) for key in ("digest", "commit"))
        lines.append([f"`{network.name}`", f"`{network.command}`", *told])
    return table(["network", "trained by", "digest", "commit"], lines)
