"""The report of `steadyseg analyze`: what it needs, its folder, its command line, and tables on the terminal."""

import dataclasses
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from rich.table import Table as ScreenTable

from steadyseg.app.console import Console
from steadyseg.app.open_model import is_graph
from steadyseg.app.parsing import default_of, nested_options
from steadyseg.app.report_file import write_figure, write_json
from steadyseg.core.errors import InputError, refuse_existing
from steadyseg.core.options import is_rare
from steadyseg.studies.harness.tables import report_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Table = tuple[str, Sequence[str], Sequence[Sequence[Any]]]
"""Title, columns and rows of a table."""
DPI = 130
CORRUPTIONS, PLOTS = "imagecorruptions", "matplotlib"
OMITTED = ("output", "overwrite", "plots", "settings")
"""Fields that do not change what is measured."""


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


def table_of(title: str, columns: Sequence[tuple[str, str]], rows: Iterable[Mapping[str, Any]]) -> Table:
    """A table of rows by (heading, key) of each column; None where a row lacks the key."""
    return title, [heading for heading, _ in columns], [[row.get(key) for _, key in columns] for row in rows]


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


def require_extra(package: str, use: str) -> None:
    """Raises InputError that names the extra where the package is not installed; `use` says what needs it."""
    if find_spec(package) is None:
        raise InputError(f"{use} needs the package {package}, which is not installed: pip install 'steadyseg[studies]'")


def check_folder(out: Path, *, overwrite: bool) -> None:
    """Raises InputError, before any work is done, if no report can be written into `out` or one is there already."""
    there = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not there.is_dir():
        raise InputError(f"--output {out}: {there} is a file; give the name of a folder")
    if not os.access(there, os.W_OK):
        raise InputError(f"--output {out}: {there} cannot be written to; choose another folder")
    refuse_existing(out / "report.json", overwrite)


def command_line(study: str, models: tuple[str, ...], job: Any) -> str:
    """The command with its networks, its data, and every flag and setting that is not at its default."""
    words, settings = ["steadyseg", "analyze", study, *models], []
    for name, value, rare in changed(job):
        values = [str(one) for one in (value if isinstance(value, tuple) else (value,))]
        if rare:
            settings.append(f"{name}={','.join(values)}")
        else:
            words += [f"--{name.replace('_', '-')}", *values]
    return shlex.join(words + ["--config", *settings] * bool(settings))


def changed(job: Any) -> Iterator[tuple[str, Any, bool]]:
    """Yields name, value and whether it is a setting without a flag, of all that is not at its default."""
    hints = get_type_hints(type(job), include_extras=True)
    for field in dataclasses.fields(job):
        value = getattr(job, field.name)
        if nested_options(hints[field.name]):
            yield from changed(value)
        elif field.name not in ("models", *OMITTED) and value != default_of(field):
            yield field.name, value, is_rare(hints[field.name])
