"""Tables over the seeds of a robustness study: mean and spread, and the change against another network or method."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from steadyseg.studies.harness.rows import Row, title_of
from steadyseg.studies.harness.tables import table
from steadyseg.studies.robustness.report import stream_mean, stream_title
from steadyseg.studies.robustness.runs import REPEATED_SEVERITY

Read = Callable[[dict[str, Any], str], float | None]
"""A figure of a network and method (by title) in a run."""


def seeds_table(records: Sequence[dict[str, Any]]) -> str:
    """Mean and standard deviation over the seeds, of each metric and of its change against the first network."""
    titles = [title_of(row) for row in records[0]["studies"]["corruptions"]["clean"]]
    columns: dict[str, Read] = {
        "accuracy": partial(corruption_mean, key="accuracy"),
        "NLL": partial(corruption_mean, key="nll"),
        "ECE": partial(corruption_mean, key="ece"),
        "FGSM succeeds": partial(success, attack="fgsm"),
        "PGD succeeds": partial(success, attack="pgd"),
    }
    lines = [[name, *(compare(records, name, titles[0], read) for read in columns.values())] for name in titles]
    return table(["network", *columns], lines)


def stream_table(records: Sequence[dict[str, Any]], severity: int) -> str:
    """Every method along the stream, and its change against the same network's single frames."""
    methods = dict.fromkeys(map(stream_title, records[0]["studies"]["stream"]["rows"]))
    keys = {"accuracy": "accuracy", "NLL": "nll", "ECE": "ece", "consistency": "consistency"}

    def read(record: dict[str, Any], way: str, key: str) -> float | None:
        return stream_mean(record["studies"]["stream"], way, severity, key)

    def base_of(way: str) -> str:
        return f"{way.partition(' vq-')[0].removesuffix(' dnn')} dnn"

    lines = [
        [way, *(compare(records, way, base_of(way), partial(read, key=key)) for key in keys.values())]
        for way in methods
    ]
    return table(["way", *keys], lines)


def corruption_mean(record: Mapping[str, Any], name: str, key: str) -> float | None:
    """Mean over types at the severity that all seeds have."""
    rows = record["studies"]["corruptions"]["rows"]
    mine = [row[key] for row in rows if title_of(row) == name and row["severity"] == REPEATED_SEVERITY]
    return statistics.fmean(mine) if mine else None


def success(record: Mapping[str, Any], name: str, attack: str) -> float | None:
    """Attack success rate at the first budget."""
    rows: Iterable[Row] = record["studies"]["attacks"]["rows"]
    return next((row["attack_success_rate"] for row in rows if title_of(row) == name and row["attack"] == attack), None)


def compare(records: Sequence[dict[str, Any]], name: str, base: str, read: Read) -> str:
    """`mean ± sd (change ± sd, n of N)`; one record alone has no spread."""
    values = [read(record, name) for record in records]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return "-"
    told = format_spread(known, ".3f")
    if name == base:
        return told
    pairs = [(value, read(record, base)) for value, record in zip(known, records, strict=True)]
    against = [value - other for value, other in pairs if other is not None]
    if len(against) < len(known):
        return told
    change = statistics.fmean(against)
    agree = sum((value > 0) == (change > 0) for value in against)
    return f"{told} ({format_spread(against, '+.3f')}" + (f", {agree} of {len(against)})" if len(against) > 1 else ")")


def format_spread(values: Sequence[float], form: str) -> str:
    """`mean ± standard deviation`, or the one value there is."""
    mean = f"{statistics.fmean(values):{form}}"
    return f"{mean} ± {statistics.stdev(values):.3f}" if len(values) > 1 else mean
