"""docs/studies/analysis: what the papers expect and what is found, then every study of both pairs."""

import json
from pathlib import Path
from typing import Any

from app.commands import load
from studies.analysis.expectations import EXPECTED
from studies.analysis.runs import FLAGS, PAIRS
from studies.analysis.study import Study
from studies.harness.document import table

TEXT = Path(__file__).parent / "text.md"
Reports = dict[str, dict[str, Any]]
"""By PAIR/STUDY."""


def write_document(page: Path) -> None:
    """docs/studies/analysis, from the reports that are there."""
    (page / "README.md").write_text(document(page))


def document(page: Path) -> str:
    """The whole text; a study that has not been run is left out."""
    files = sorted(page.glob("*/*/report.json"))
    reports = {f"{file.parent.parent.name}/{file.parent.name}": json.loads(file.read_text()) for file in files}
    networks = "\n".join(f"- {pair.about} (`{pair.name}`)" for pair in PAIRS)
    head = TEXT.read_text().strip().replace("{networks}", networks).replace("{expected}", expected(reports))
    return "\n\n".join([head, *(part for study in FLAGS for part in section_of(study, reports, page))]) + "\n"


def expected(reports: Reports) -> str:
    """The papers' expectations as a table, pair by pair."""
    lines = []
    for study, words, look in EXPECTED:
        for pair in PAIRS:
            report = reports.get(f"{pair.name}/{study}")
            found = look(report) if report else None
            if found:
                lines.append([words, pair.name, found.figures, f"{found.holds} of {found.of}"])
    return table(
        ("expected of the smooth network", "pair", "plain against smooth, or layer by layer", "holds in"), lines
    )


def section_of(study: str, reports: Reports, page: Path) -> list[str]:
    """One study: what its figures mean, and for each pair the command, its cost and its plots."""
    there = [(pair, report) for pair in PAIRS if (report := reports.get(f"{pair.name}/{study}"))]
    if not there:
        return []
    kind: Study = load(f"studies.analysis.{study}:STUDY")
    parts = [f"## {kind.title}", kind.about]
    for pair, report in there:
        place = f"{pair.name}/{study}"
        plots = sorted(path.name for path in (page / place).glob("*.png"))
        notes = " ".join(f"({note}.)" for note in report["notes"])
        parts.append(
            f"**{pair.name}**: `{report['command']}`, {report['seconds'] / 60:.1f} minutes, "
            f"{report['cpu_seconds'] / 60:.1f} of processor time, at most {report['peak_memory_mb']} MB; "
            f"[all figures]({place}/report.md). {notes}".strip()
        )
        parts += [f"![{study} of the {pair.name}]({place}/{plot})" for plot in plots]
    return parts
