"""The tables of the model cards, the README and its page of results, from checkpoint records and measured rows."""

import json
from functools import partial
from pathlib import Path
from typing import Any

from steadyseg.classification.pretrained import FOLDER as CLASSIFIERS
from steadyseg.seg.pretrained import FOLDER as SEGMENTERS
from steadyseg.studies.harness.study import PROJECT
from steadyseg.studies.harness.tables import Tables, read_record, table
from steadyseg.studies.harness.trust import trust_tables
from steadyseg.studies.results.replica import readings_table

README = PROJECT / "README.md"
CONFIDENCE, PAPERS = (PROJECT / "docs" / "explanation" / f"{name}.md" for name in ("confidence", "papers"))
PAGES_WITHOUT_RECORD = (README, CONFIDENCE, PAPERS)
ABSENT = "-"
FIGURES = {
    "NLL": "nll",
    "accuracy": "accuracy",
    "mIoU": "miou",
    "ECE": "ece",
    "ECE-15": "ece_15",
    "ECE+-": "ece_signed",
    "Brier": "brier",
    "Acc-90": "acc_90",
    "Unc-90": "unc_90",
    "Freq-90": "freq_90",
    "consistency": "consistency",
    "error recall": "error_recall_10",
}
ORDER = ("stills-dnn", "stream-dnn", "stream-vq-dnn", "stream-vq-bnn", "stream-bnn")
RULE_FIGURES = {
    "NLL": "nll",
    "accuracy": "accuracy",
    "consistency": "consistency",
    "of the labels": "label_consistency",
    "change agreement": "change_agreement",
    "of a frozen prediction": "change_agreement_frozen",
}
TESTS = {"cifar10-jpeg": "JPEG", "cifar10": "official"}
"""Test sets in docs/records/classification/included.json."""
RULE_PROTOCOLS = {"changes": "stream", "unseen": "98 moving stills"}


def cards() -> list[Path]:
    written = (card for folder in (SEGMENTERS, CLASSIFIERS) for card in sorted(folder.glob("*.md")))
    return [*PAGES_WITHOUT_RECORD, *written]


def card_tables(card: Path) -> Tables:
    """The tables of a model card, or of a page without a record, by their names in the page."""
    record = {} if card in PAGES_WITHOUT_RECORD else json.loads(card.with_suffix(".json").read_text())
    own = {"readings": readings_table, **trust_tables()}
    return {**own, **{name: partial(make, card.stem, record) for name, make in TABLES.items()}}


def measured(name: str, record: dict[str, Any]) -> str:
    """Every figure of every protocol and mode."""
    lines = [
        [
            row["protocol"],
            f"`{row['mode']}`",
            str(row["samples"]),
            f"{row['temperature']:.3f}" if row["calibrated"] else ABSENT,
            *(cell(row.get(key)) for key in FIGURES.values()),
        ]
        for row in rows_of(record)
    ]
    return table(["protocol", "mode", "passes", "T", *FIGURES], lines)


def iou(name: str, record: dict[str, Any]) -> str:
    rows = rows_of(record)
    lines = [
        [label, *(cell(row["iou"][place]) for row in rows)] for place, label in enumerate(record["classes"]["names"])
    ]
    return table(["IoU", *(f"{row['protocol']} `{row['mode']}`" for row in rows)], lines)


def sets(name: str, record: dict[str, Any]) -> str:
    """Results of the shipped thresholds on the stream, which they were not fitted on."""
    lines = []
    for row in rows_of(record):
        if found := row.get("conformal"):
            risk = found["class_risk"]
            shares = [cell(found["lac"][key]) for key in ("coverage", "coverage_image_p5", "coverage_image_min")]
            told = [f"{found['lac']['set_size']:.2f}", cell(risk["risk"]), cell(risk["reported_share"])]
            lines.append([row["protocol"], f"`{row['mode']}`", *shares, *told])
    columns = ("covered", "5th percentile", "least covered image", "classes a set", "Pedestrian missed")
    return table(["protocol", "mode", *columns, "reported as one"], lines)


def int8(name: str, record: dict[str, Any]) -> str:
    """Effect of rounding to 8 bits on the stills."""
    found = record["int8"]
    rows = ("fp32", 1.0, 0), ("int8", found["labels_equal"], 1)
    keys = {"accuracy": "accuracy", "mIoU": "miou", "NLL": "nll", "ECE": "ece"}
    lines = [
        [number, cell(equal), *(cell(found[key][place]) for key in keys.values())] for number, equal, place in rows
    ]
    return table(["format", "labels as fp32's", *keys], lines)


def changes(name: str, record: dict[str, Any]) -> str:
    """Changes of the network's predictions along the stream, and the default rule on stills that its choice did not
    see."""
    job = read_record("results")[f"{name} default rule"]["rows"]
    lines = [
        [protocol, f"`{method}`", *(cell(row[key]) for key in RULE_FIGURES.values())]
        for place, protocol in RULE_PROTOCOLS.items()
        for method, row in sorted(job[place].items())
    ]
    return table(["frames", "row", *RULE_FIGURES], lines)


def pictures(name: str, record: dict[str, Any]) -> str:
    """A classifier's figures on the 1,000 official test pictures and on all 10,000 as JPEG; accuracy and ECE in
    percent."""
    rows = read_record("classification", "included.json")[name]["rows"]
    lines = [
        [
            f"{row['frames']:,} {TESTS[row['data']]}",
            f"`{row['mode']}`",
            str(row["samples"]),
            f"{row['temperature']:.3f}" if row["calibrated"] else ABSENT,
            *(f"{100 * row['accuracy']:.1f}", f"{row['nll']:.3f}", f"{100 * row['ece']:.1f}"),
        ]
        for row in rows
    ]
    return table(["test pictures", "mode", "passes", "T", "accuracy", "NLL", "ECE"], lines)


TABLES = {one.__name__: one for one in (measured, iou, sets, int8, changes, pictures)}


def rows_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Evaluations in the cards' order."""
    metrics = {key: row for key, row in record["metrics"].items() if "nll" in row}
    return [metrics[key] for key in sorted(metrics, key=lambda key: ORDER.index(key) if key in ORDER else len(ORDER))]


def cell(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.4f}"
