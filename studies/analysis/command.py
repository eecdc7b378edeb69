"""`steadyseg analyze STUDY`: measures, prints the table, and writes report.md, report.json and the plots into a
folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from steadyseg.app.commands import load
from steadyseg.app.report_file import write_figure, write_json
from steadyseg.core.system.files import write_atomic
from steadyseg.studies.analysis.flags import StudyJob
from steadyseg.studies.harness.command_line import command_line
from steadyseg.studies.harness.requirements import PLOTS, check_folder, require_extra


def run_study(job: StudyJob) -> int:
    """Runs the study that the job names, prints its tables and writes its report."""
    from steadyseg.studies.analysis.study import Results, Study, run
    from steadyseg.studies.analysis.subjects import require_checkpoints
    from steadyseg.studies.harness.target import short_names

    require_checkpoints(job.options.models)
    if job.options.plots:
        require_extra(PLOTS, "plots")
    names = "+".join(Path(name).name for name in short_names(job.options.models))
    out = job.options.output or Path("runs") / job.study / names
    check_folder(out, overwrite=job.options.overwrite)
    study: Study = load(f"steadyseg.studies.analysis.{job.study}:STUDY")
    command = command_line(job.study, job.options.models, job)

    def keep(record: Results) -> None:
        out.mkdir(parents=True, exist_ok=True)
        write_record(record, out, command)

    record = run(study, job, keep)
    write_report(study, record, out, command, job.options.plots)
    console = Console()
    for title, columns, rows in study.tables(record["results"]):
        table = Table(*columns, title=title, title_justify="left")
        for row in rows:
            table.add_row(*(figure(value) for value in row))
        console.print(table)
    for note in record["notes"]:
        Console(stderr=True).print(f"note: {note}", soft_wrap=True, highlight=False)
    print(out / "report.md")
    return 0


def write_report(
    study: Any, record: dict[str, Any], out: Path, command: str, plots: bool, without: tuple[str, ...] = ()
) -> None:
    """report.json, the plots but those `without`, and report.md, in a folder that is made where there is none."""
    out.mkdir(parents=True, exist_ok=True)
    write_record(record, out, command)
    names = []
    for name, drawn in (study.figures(record["results"]) if plots else {}).items():
        if name not in without:
            write_figure(out / f"{name}.png", drawn, dpi=130)
            names.append(f"{name}.png")
    write_atomic(out / "report.md", markdown(study, record, command, sorted(names)).encode())


def write_record(record: dict[str, Any], out: Path, command: str) -> None:
    """Writes report.json, without the pixels that only a plot shows."""
    results = {key: value for key, value in record["results"].items() if key != "images"}
    write_json(out / "report.json", {"command": command, **record, "results": results})


def markdown(study: Any, record: dict[str, Any], command: str, plots: list[str]) -> str:
    """The whole report; `plots` are names of PNG files beside it."""
    models = ", ".join(model["model"] for model in record["models"])
    memory = f", at most {record['peak_memory_mb']} MB of memory" if record["peak_memory_mb"] else ""
    parts = [
        f"# {study.title}: {models}",
        f"`{command}`",
        f"{record['pictures']} of {record['split_pictures']} pictures of {record['data']} {record['split']} (list "
        f"{record['list_hash']}), seed {record['seed']}, {record['device']}; {record['seconds']:.0f} s, "
        f"{record['cpu_seconds']:.0f} s of processor time{memory}.",
        study.about,
        "\n".join(f"* {note}" for note in record["notes"]),
        *(f"![{plot.removesuffix('.png')}]({plot})" for plot in plots),
        *(f"{title}\n\n{table}" for title, table in tables_of(study, record)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def tables_of(study: Any, record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for title, columns, rows in study.tables(record["results"]):
        right = [not all(isinstance(row[place], str) for row in rows) for place in range(len(columns))]
        lines = [
            list(columns),
            ["---:" if one else "---" for one in right],
            *([figure(v) for v in row] for row in rows),
        ]
        yield title, "\n".join("| " + " | ".join(line) + " |" for line in lines)


def figure(value: Any) -> str:
    """Four significant digits; a dash for None."""
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
