"""`steadyseg analyze STUDY`: measures, prints the table, and writes report.md, report.json and the plots into a
folder."""

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
from steadyseg.studies.harness.tables import bullets, figure, paragraphs, report_table

FORM = ".4g"
"""Numbers of a report: four significant digits."""


def run_study(job: StudyJob) -> int:
    """Runs the study that the job names, prints its tables and writes its report."""
    from steadyseg.studies.analysis.study import Study, run
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

    record = run(study, job, keep=lambda so_far: write_record(so_far, out, command))
    write_report(study, record, out, command, job.options.plots)
    console = Console()
    for title, columns, rows in study.tables(record["results"]):
        table = Table(*columns, title=title, title_justify="left")
        for row in rows:
            table.add_row(*(figure(value, FORM) for value in row))
        console.print(table)
    for note in record["notes"]:
        Console(stderr=True).print(f"note: {note}", soft_wrap=True, highlight=False)
    print(out / "report.md")
    return 0


def write_report(study: Any, record: dict[str, Any], out: Path, command: str, plots: bool) -> None:
    """report.json, the plots and report.md."""
    write_record(record, out, command)
    names = write_plots(study, record, out) if plots else []
    write_atomic(out / "report.md", markdown(study, record, command, names).encode())


def write_plots(study: Any, record: dict[str, Any], out: Path) -> list[str]:
    """Writes the plots and returns the names of their files."""
    drawn = study.figures(record["results"])
    for name, plot in drawn.items():
        write_figure(out / f"{name}.png", plot, dpi=130)
    return sorted(f"{name}.png" for name in drawn)


def write_record(record: dict[str, Any], out: Path, command: str) -> None:
    """Writes report.json into the folder, which is made if it is missing."""
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "report.json", {"command": command, **record})


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
        bullets(record["notes"]),
        *(f"![{plot.removesuffix('.png')}]({plot})" for plot in plots),
        *(
            f"{title}\n\n{report_table(columns, rows, FORM)}"
            for title, columns, rows in study.tables(record["results"])
        ),
    ]
    return paragraphs(parts)
