"""The report of `steadyseg analyze`: report.json, report.md and plots in a folder, and tables on the terminal."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table as ScreenTable

from steadyseg.app.open_model import is_graph
from steadyseg.app.report_file import write_figure, write_json
from steadyseg.core.errors import InputError
from steadyseg.studies.harness.requirements import PLOTS, check_folder, require_extra
from steadyseg.studies.harness.tables import report_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Table = tuple[str, Sequence[str], Sequence[Sequence[Any]]]
"""Title, columns and rows of a table."""
DPI = 130


def require_checkpoints(models: Sequence[str], known: str, why: str) -> None:
    """Raises InputError without a model, or for a graph file.

    Args:
        models: Names and files.
        known: The kinds of networks that the study takes.
        why: The reason for which a graph file does not do.
    """
    if not models:
        raise InputError(f"say which network: {known}, or several to compare")
    for model in models:
        if is_graph(model):
            raise InputError(f"{model}: {why}; give the checkpoint it was exported from")


def choose_folder(study: str, models: Sequence[str], job: Any) -> Path:
    """The report's folder; InputError, before any work, where it cannot be written or matplotlib is missing."""
    from steadyseg.studies.harness.target import short_names

    if job.plots:
        require_extra(PLOTS, "plots")
    out: Path = job.output or Path("runs") / study / "+".join(Path(name).name for name in short_names(models))
    check_folder(out, overwrite=job.overwrite)
    return out


def write_report_json(record: Mapping[str, Any], out: Path, command: str) -> None:
    """Writes report.json into the folder, which is made if it is missing."""
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "report.json", {"command": command, **record})


def write_plots(figures: Mapping[str, "Figure"], out: Path) -> list[str]:
    """Writes the plots and returns the names of their files."""
    for name, plot in figures.items():
        write_figure(out / f"{name}.png", plot, dpi=DPI)
    return [f"{name}.png" for name in figures]


def report_tables(tables: Iterable[Table], form: str) -> list[str]:
    """The tables in Markdown, each behind its title; numbers in this form."""
    return [part for title, columns, rows in tables for part in (title, report_table(columns, rows, form))]


def print_report(tables: Iterable[ScreenTable], notes: Iterable[str], out: Path) -> None:
    """Prints the tables, the notes on stderr, and the place of the report."""
    for table in tables:
        Console().print(table)
    for note in notes:
        Console(stderr=True).print(f"note: {note}", soft_wrap=True, highlight=False)
    print(out / "report.md")
