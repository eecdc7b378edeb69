"""The tables that set our rows beside the published ones."""

from typing import Any

from steadyseg.studies.harness.tables import table
from steadyseg.studies.results.cells import (
    ABSENT,
    Rows,
    cell,
    change,
    format_row,
    mark_columns,
    row_at,
    yes,
)
from steadyseg.studies.results.matrix import COMPARED, RECIPES, Network
from steadyseg.studies.results.published import (
    PUBLISHED_THROUGHPUT,
    SPATIAL_TABLE,
    VQBNN_KEYS,
    VQBNN_TABLE,
    PublishedRow,
)

THROUGHPUT_ROWS = {
    "bare_plain": "the plain network alone",
    "bare": "with spatial smoothing",
    "dnn": "one pass, all maps",
    "vq_dnn": "VQ-DNN, all maps",
    "vq_dnn_motion": "VQ-DNN along the motion, all maps",
    "vq_bnn": "VQ-BNN, all maps",
    "mc_30": "MC dropout, 30 passes, all maps",
}


EFFECTS: dict[str, tuple[tuple[bool, bool, str], tuple[bool, bool, str]]] = {
    "temporal smoothing, plain network": ((False, False, "dnn"), (False, False, "vq-dnn")),
    "temporal smoothing, one dropout pass": ((True, False, "bnn-1"), (True, False, "vq-bnn")),
    "temporal smoothing, one dropout pass, spatial smoothing": ((True, True, "bnn-1"), (True, True, "vq-bnn")),
    "30 dropout passes instead of one": ((True, False, "bnn-1"), (True, False, "bnn-30")),
    "VQ-BNN (one pass) instead of 30 passes": ((True, False, "bnn-30"), (True, False, "vq-bnn")),
    "VQ-BNN instead of 30 passes, both with spatial smoothing": ((True, True, "bnn-30"), (True, True, "vq-bnn")),
    "spatial smoothing, one dropout pass": ((True, False, "bnn-1"), (True, True, "bnn-1")),
    "spatial smoothing, 30 dropout passes": ((True, False, "bnn-30"), (True, True, "bnn-30")),
    "spatial smoothing, VQ-BNN": ((True, False, "vq-bnn"), (True, True, "vq-bnn")),
    "spatial smoothing, no dropout": ((False, False, "dnn"), (False, True, "dnn")),
    "dropout, 30 passes": ((False, False, "dnn"), (True, False, "bnn-30")),
    "all three, one pass": ((False, False, "dnn"), (True, True, "vq-bnn")),
}
"""Published effects of smoothing and dropout: from a row to a row, each (dropout, spatial smoothing, method)."""


def method_of(row: PublishedRow, protocol: str) -> str:
    """Our row for a published one: 30 passes where they have 50, one pass on moving stills."""
    if row.temporal:
        return "vq-bnn" if row.dropout else "vq-dnn"
    if not row.dropout:
        return "dnn"
    return "bnn-1" if protocol == "moving-stills" else "bnn-30"


def published_effects_table(rows: Rows, protocol: str) -> str:
    """Table 2 / E.4, ours beside it, with the change of NLL against each block's plain row."""
    lines = []
    for row in SPATIAL_TABLE:
        method = method_of(row, protocol)
        ours = []
        for recipe in RECIPES:
            found, plain = (
                row_at(rows, Network(recipe, *factors).name, protocol, name)
                for factors, name in (((row.dropout, row.smoothing), method), ((False, False), "dnn"))
            )
            ours += [*format_row(found), change(found, plain)]
        first = SPATIAL_TABLE[0]
        published = [
            f"{row.nll:.3f}",
            f"{100 * row.accuracy:.1f}",
            f"{100 * row.ece:.2f}",
            f"{100 * row.consistency:.1f}",
            f"{100 * (row.nll / first.nll - 1):+.0f} %",
        ]
        lines.append([yes(row.dropout), yes(row.smoothing), yes(row.temporal), method, *published, *ours])
    if all(set(line[9:]) == {ABSENT} for line in lines):
        return ""
    header = ["MC", "spatial", "temporal", "our row", "NLL", "acc", "ECE", "cons", "NLL change"]
    for recipe in RECIPES:
        header += [f"{recipe}: NLL", "acc", "mIoU", "ECE", "cons", "NLL change"]
    return table(header, lines)


def effects_table(rows: Rows) -> str:
    """Each published effect alone: the change of NLL from one row to another."""
    lines = []
    for words, ends in EFFECTS.items():
        cells = []
        for recipe in RECIPES:
            for protocol in ("stream", "moving-stills"):
                base, row = (row_at(rows, Network(recipe, *at[:2]).name, protocol, at[2]) for at in ends)
                cells.append(change(row, base))
        base, row = (find_published_nll(*at) for at in ends)
        lines.append([words, change(row, base), *cells])
    if all(set(line[2:]) == {ABSENT} for line in lines):
        return ""
    columns = [f"{recipe}: {protocol}" for recipe in RECIPES for protocol in ("stream", "moving stills")]
    return table(["effect", "published", *columns], lines)


def find_published_nll(dropout: bool, smoothing: bool, method: str) -> dict[str, Any] | None:
    """Table 2 / E.4 has no row of one dropout pass on a single frame."""
    for row in SPATIAL_TABLE:
        if (row.dropout, row.smoothing, method_of(row, "stream")) == (dropout, smoothing, method):
            return {"nll": row.nll}
    return None


def vqbnn_table(rows: Rows) -> str:
    """Table 1 of the VQ-BNN paper."""
    plain, dropout = Network("paper", False, False).name, Network("paper", True, False).name
    ours = {
        "DNN": (plain, "dnn"),
        "BNN (30)": (dropout, "bnn-30"),
        "VQ-DNN": (plain, "vq-dnn"),
        "VQ-BNN": (dropout, "vq-bnn"),
    }
    lines = []
    for name, published in VQBNN_TABLE.items():
        given = [
            ABSENT if value is None else cell(key, value) for key, value in zip(VQBNN_KEYS, published, strict=True)
        ]
        lines.append([name, *given, *format_row(row_at(rows, ours[name][0], "stream", ours[name][1]), VQBNN_KEYS)])
    titles = ["NLL", "acc", "acc-90", "unc-90", "IoU", "IoU-90", "freq-90", "ECE"]
    header = ["", *titles, *mark_columns("ours", titles)]
    return table(header, lines)


def passes_table(rows: Rows) -> str:
    """NLL against the number of passes, with the one pass that temporal smoothing needs."""
    lines = []
    for network in (network for network in COMPARED if network.dropout):
        for protocol in ("stills", "stream"):
            names = ("dnn", "bnn-1", "bnn-5", "bnn-30", "vq-bnn", "vq-bnn motion")
            found = [row_at(rows, network.name, protocol, name) for name in names]
            if any(found):
                lines.append([network.name, protocol, *(format_row(row, ["nll"])[0] for row in found)])
    titles = "network, protocol, dropout off, 1 pass, 5, 30, VQ-BNN (1 pass), VQ-BNN along the motion (1 pass)"
    header = titles.split(", ")
    return table(header, lines)


def throughput_table(record: Rows) -> str:
    """Throughput relative to the plain network alone, from one run of `steadyseg bench`; it depends on no weights."""
    plain = record["rows"]["bare_plain"]["median_ms"]
    lines = [
        [
            meaning,
            PUBLISHED_THROUGHPUT.get(name, ABSENT),
            cell("", plain / row["median_ms"]),
            f"{row['median_ms']:.1f}",
            str(row["calls"]),
        ]
        for name, meaning in THROUGHPUT_ROWS.items()
        if (row := record["rows"].get(name))
    ]
    return table(["row", "published", "ours", "median ms", "calls"], lines)
