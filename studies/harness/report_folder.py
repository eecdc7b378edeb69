"""The report of an analysis: what it needs, its folder, its command line, and tables on the terminal."""

import dataclasses
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_type_hints

from rich.table import Table as ScreenTable

from steadyseg.app.console import Console
from steadyseg.app.parsing import default_of, nested_options
from steadyseg.app.report_file import write_json
from steadyseg.core.errors import InputError, refuse_existing
from steadyseg.core.options import is_rare
from steadyseg.core.system.files import write_atomic
from steadyseg.runtime.open_model import is_graph
from steadyseg.studies.harness.tables import report_table

Table = tuple[str, Sequence[str], Sequence[Sequence[Any]]]
"""Title, columns and rows of a table."""
CORRUPTIONS = "imagecorruptions"
OMITTED = ("output", "overwrite", "settings")
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


class Report:
    """The folder of a report, and the command that makes it again."""

    def __init__(self, study: str, models: Sequence[str], flags: Any, job: Any) -> None:
        """InputError, before any work, where the folder cannot be written.

        Args:
            study: Name of the study.
            models: Names and files of the networks.
            flags: The part of the job with `output` and `overwrite`.
            job: All flags, for the command.
        """
        from steadyseg.studies.harness.target import short_names

        names = (Path(name).name for name in short_names(models))
        self.out: Path = flags.output or Path("runs") / study / "+".join(names)
        check_folder(self.out, overwrite=flags.overwrite)
        self.command = command_line(study, models, job)

    def write_json(self, record: Mapping[str, Any]) -> None:
        """Writes report.json into the folder, which is made if it is missing."""
        self.out.mkdir(parents=True, exist_ok=True)
        write_json(self.out / "report.json", {"command": self.command, **record})

    def write(self, record: Mapping[str, Any], markdown: Callable[[str], str]) -> None:
        """Writes report.json and report.md; `markdown` gets the command."""
        self.write_json(record)
        write_atomic(self.out / "report.md", markdown(self.command).encode())

    def show(self, tables: Iterable[ScreenTable], notes: Iterable[str]) -> None:
        """Prints the tables, the notes on stderr, and the place of the report."""
        for table in tables:
            Console().print(table)
        for note in notes:
            Console(stderr=True).print(f"note: {note}", soft_wrap=True, highlight=False)
        print(self.out / "report.md")


def table_of(title: str, columns: Sequence[tuple[str, str]], rows: Iterable[Mapping[str, Any]]) -> Table:
    """A table of rows by (heading, key) of each column; None where a row lacks the key."""
    return title, [heading for heading, _ in columns], [[row.get(key) for _, key in columns] for row in rows]


def report_tables(tables: Iterable[Table], form: str) -> list[str]:
    """The tables in Markdown, each behind its title; numbers in this form."""
    return [part for title, columns, rows in tables for part in (title, report_table(columns, rows, form))]


def require_extra(package: str, use: str) -> None:
    """Raises InputError that names the extra where the package is not installed; `use` says what needs it."""
    if find_spec(package) is None:
        raise InputError(
            f"{use} needs the package {package}, which is not installed: pip install '.[studies]' in SteadySeg's clone"
        )


def check_folder(out: Path, *, overwrite: bool) -> None:
    """Raises InputError, before any work is done, if no report can be written into `out` or one is there already."""
    there = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not there.is_dir():
        raise InputError(f"--output {out}: {there} is a file; give the name of a folder")
    if not os.access(there, os.W_OK):
        raise InputError(f"--output {out}: {there} cannot be written to; choose another folder")
    refuse_existing(out / "report.json", overwrite)


def command_line(study: str, models: Sequence[str], job: Any) -> str:
    """The command with its networks, its data, and every flag and setting that is not at its default."""
    words, settings = ["python", "-m", "steadyseg.studies.analysis", study, *models], []
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
