"""The tables of docs/records/results that are made again with other weights; the page keeps its trainings' tables."""

from typing import Any

from steadyseg.studies.harness.tables import Tables, bind, read_record, table
from steadyseg.studies.results.carried import carried_table
from steadyseg.studies.results.decay import decay_table
from steadyseg.studies.results.every import every_table
from steadyseg.studies.results.front import SHOWN
from steadyseg.studies.results.protocol import protocol_table
from steadyseg.studies.results.replica import replica_table
from steadyseg.studies.results.rule import rule_job

TRAINED = [f"{recipe}-{kind}-0" for recipe in ("paper", "cpu") for kind in ("plain", "smooth", "mc", "mc-smooth")]
NETWORKS = (*SHOWN, *TRAINED, "paper-plain-1", "paper-plain-2")
TITLES = {"nll": "NLL", "accuracy": "acc", "ece": "ECE", "change_agreement": "agreement"}
METHODS = {"dnn": "single frame", "vq-dnn": "window", "vq-dnn motion": "motion"}


def tables() -> Tables:
    """The tables by their names in the page."""
    return {
        **bind(read_record("results"), {"rule": rule_table}),
        "decay": decay_table,
        "carried": carried_table,
        "every": every_table,
        "protocol": protocol_table,
        "replica": replica_table,
    }


def rule_table(record: dict[str, Any]) -> str:
    """The default rule on frames that it was not chosen on."""
    header = ["network"]
    for words in METHODS.values():
        first, *others = TITLES.values()
        header += [f"{words}: {first}", *others]
    lines = []
    for network in NETWORKS:
        rows = [record[rule_job(network)]["rows"]["unseen"][method] for method in METHODS]
        single, window, motion = (row["nll"] for row in rows)
        changes = [f"{100 * (motion / other - 1):+.1f} %" for other in (single, window)]
        lines.append([network, *(cell(key, row[key]) for row in rows for key in TITLES), *changes])
    return table([*header, "motion against single frame: NLL", "against window: NLL"], lines)


def cell(key: str, value: float) -> str:
    """NLL with four digits, shares in percent."""
    return f"{value:.4f}" if key == "nll" else f"{100 * value:.2f}"
