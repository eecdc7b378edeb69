"""docs/studies/robustness: the judgement, what three seeds agree on, and where the whole reports are."""

import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from studies.harness.document import fill, section, table
from studies.harness.rows import Row, has_temperature, title_of
from studies.robustness.figures import figure
from studies.robustness.report import stream_mean, stream_title
from studies.robustness.runs import CALIBRATED, GROUPS, REPEATED_SEVERITY, SEEDS, Group

FINDINGS = Path(__file__).parent / "findings.md"
Read = Callable[[dict[str, Any], str], float | None]
"""A figure of a network and way (by title) in a run."""


def write_document(page: Path) -> None:
    """docs/studies/robustness, from the reports that are there."""
    (page / "README.md").write_text(document(page))


def document(page: Path) -> str:
    """The whole text: every group gets its plots, and the tables over seeds where it has been run with all."""
    reports = {path.parent.name: json.loads(path.read_text()) for path in page.glob("*/report.json")}
    parts = [fill(FINDINGS.read_text(), lambda name: figure(reports, name))]
    for group in GROUPS:
        records = seeds_of(page, group)
        if records:
            tables = spreads(records) if len(records) == len(SEEDS) else []
            parts += [f"## {title(group)}", pointer(page, group, records[0]), *tables]
    calibrated = page / CALIBRATED / "report.json"
    if calibrated.exists():
        parts.append(calibrated_section(json.loads(calibrated.read_text())))
    return "\n\n".join(parts) + "\n"


def title(group: Group) -> str:
    return group.about[0].upper() + group.about[1:]


def seeds_of(page: Path, group: Group) -> list[dict[str, Any]]:
    """The reports that are there, seed 0 first."""
    files = [page / group.run_name(seed) / "report.json" for seed in SEEDS]
    return [json.loads(file.read_text()) for file in files if file.exists()]


def pointer(page: Path, group: Group, whole: dict[str, Any]) -> str:
    """Link to the whole report, the command that makes it, and its plots."""
    plots = sorted(path.name for path in (page / group.name).glob("*.png"))
    shown = "\n".join(f"![{name}]({group.name}/{name})" for name in plots)
    return (
        f"[All figures of seed 0]({group.name}/report.md), {whole['seconds'] / 60:.0f} minutes on "
        f"{whole['threads']} {'thread' if whole['threads'] == 1 else 'threads'}: `{whole['command']}`\n\n{shown}"
    )


def spreads(records: Sequence[dict[str, Any]]) -> list[str]:
    """Figures over all seeds: mean and standard deviation, and those of the change against the first network."""
    titles = [title_of(row) for row in records[0]["studies"]["corruptions"]["clean"]]
    words = (
        f"Severity {REPEATED_SEVERITY}, mean over types, and attacks: mean over {len(records)} seeds ± "
        f"standard deviation; in "
        f"brackets the change against {titles[0]} of the same seed, and how many seeds it has that sign in."
    )
    columns: dict[str, Read] = {
        "accuracy": lambda record, name: corruption_mean(record, name, "accuracy"),
        "NLL": lambda record, name: corruption_mean(record, name, "nll"),
        "ECE": lambda record, name: corruption_mean(record, name, "ece"),
        "FGSM succeeds": lambda record, name: success(record, name, "fgsm"),
        "PGD succeeds": lambda record, name: success(record, name, "pgd"),
    }
    lines = [[name, *(compare(records, name, titles[0], read) for read in columns.values())] for name in titles]
    parts = [words, table(["network", *columns], lines)]
    if all("stream" in record["studies"] for record in records):
        parts += stream_spread(records)
    return parts


def stream_spread(records: Sequence[dict[str, Any]]) -> list[str]:
    """Every way along the stream against its own network on single frames; the frames are the same, so only noise has
    seeds."""
    ways = list(dict.fromkeys(map(stream_title, records[0]["studies"]["stream"]["rows"])))
    keys = {"accuracy": "accuracy", "NLL": "nll", "ECE": "ece", "consistency": "consistency"}
    parts = []
    for severity, seeds, told in (
        (0, records[:1], "Clean stream"),
        (REPEATED_SEVERITY, records, f"Stream at severity {REPEATED_SEVERITY}"),
    ):
        lines = [
            [way, *(compare(seeds, way, base_of(way), reader(severity, key)) for key in keys.values())] for way in ways
        ]
        parts += [
            f"{told}; in brackets the change against the same network's single frames.",
            table(["way", *keys], lines),
        ]
    return parts


def reader(severity: int, key: str) -> Read:
    return lambda record, way: stream_mean(record["studies"]["stream"], way, severity, key)


def base_of(way: str) -> str:
    return f"{way.partition(' vq-')[0].removesuffix(' dnn')} dnn"


def corruption_mean(record: dict[str, Any], name: str, key: str) -> float | None:
    """Mean over types at the severity that all seeds have."""
    mine = [
        row[key]
        for row in record["studies"]["corruptions"]["rows"]
        if title_of(row) == name and row["severity"] == REPEATED_SEVERITY
    ]
    return statistics.fmean(mine) if mine else None


def success(record: dict[str, Any], name: str, attack: str) -> float | None:
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


def calibrated_section(record: dict[str, Any]) -> str:
    """The classifiers again with the temperatures they ship with."""
    study = record["studies"]["corruptions"]
    lines = [
        [
            title_of(clean),
            *(f"{clean[key]:.3f}" for key in ("accuracy", "nll", "ece")),
            *(f"{corruption_mean(record, title_of(clean), key) or 0.0:.3f}" for key in ("accuracy", "nll", "ece")),
        ]
        for clean in study["clean"]
        if has_temperature(record, clean)
    ]
    columns = ["network", "clean accuracy", "NLL", "ECE", "corrupted accuracy", "NLL", "ECE"]
    words = (
        f"Severity {REPEATED_SEVERITY}, seed 0, with the temperatures that ship, fitted on held-back training pictures "
        f"(there is none for 1, 2 or 5 passes): `{record['command']}` ([report]({CALIBRATED}/report.md))."
    )
    return section("Classifiers with their temperatures", words, table(columns, lines))
