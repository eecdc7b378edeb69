"""The tables of docs/studies/analysis, from the reports of its studies."""

import json
from typing import Any

from steadyseg.studies.analysis.expectations import EXPECTED
from steadyseg.studies.analysis.runs import FLAGS, PAIRS
from steadyseg.studies.harness.study import PAGES
from steadyseg.studies.harness.tables import Tables, bind, table

PAGE = PAGES / "analysis"
Reports = dict[str, dict[str, Any]]
"""By PAIR/STUDY."""


def tables() -> Tables:
    """The tables by their names in the page."""
    files = sorted(PAGE.glob("*/*/report.json"))
    reports = {f"{file.parent.parent.name}/{file.parent.name}": json.loads(file.read_text()) for file in files}
    return bind(reports, {"expected": expected_table, "runs": runs_table})


def expected_table(reports: Reports) -> str:
    """The papers' expectations, pair by pair."""
    lines = []
    for study, words, look in EXPECTED:
        for pair in PAIRS:
            found = look(reports[f"{pair.name}/{study}"])
            if found:
                lines.append([words, pair.name, found.figures, f"{found.holds} of {found.of}"])
    header = ("expected of the smooth network", "pair", "plain against smooth, or layer by layer", "holds in")
    return table(header, lines)


def runs_table(reports: Reports) -> str:
    """Every report with its pictures, the command that makes it, and its cost."""
    lines = []
    for study in FLAGS:
        for pair in PAIRS:
            place = f"{pair.name}/{study}"
            report = reports[place]
            cost = f"{report['seconds'] / 60:.1f}", f"{report['cpu_seconds'] / 60:.1f}", str(report["peak_memory_mb"])
            pictures = f"{report['pictures']} of {report['split_pictures']}"
            lines.append([f"[{study}, {pair.name}]({place})", pictures, *cost, f"`{report['command']}`"])
    return table(("all figures", "pictures", "minutes", "of processor time", "MB at most", "made by"), lines)
