"""Reports of studies that are kept while their networks, data and settings stay the same: docs/studies/PAGE/NAME."""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from rich.console import Console

from steadyseg.classification.data.open import open_classification
from steadyseg.core.errors import InputError
from steadyseg.core.system.machine import keep_freed_memory
from steadyseg.studies.harness.networks import file_of
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.study import PAGES, data_digest, exit_code


class ReportRun(Protocol):
    """One report: its name, its networks, and its data set."""

    @property
    def name(self) -> str: ...

    @property
    def models(self) -> Sequence[str]: ...

    @property
    def data(self) -> str:
        """camvid or cifar10."""

    def digest(self, data: str) -> str:
        """Changes with the networks, the data (by its digest) and the settings."""


R = TypeVar("R", bound=ReportRun)


def run_reports(
    name: str, about: str | None, runs: Callable[[Path], Sequence[R]], study: Callable[[R, Path, str], None]
) -> int:
    """The command that makes the reports of docs/studies/NAME; returns its exit code.

    Args:
        name: Name of the page.
        about: The text of --help.
        runs: All runs, from the folder of the data.
        study: Makes the report of a run, from the folder of the data and the digest.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with camvid/ and cifar10/")
    parser.add_argument("--only", nargs="*", help="only these runs, by name")
    parser.add_argument("--fresh", action="store_true", help="run again what is there already")
    given = parser.parse_args()

    def work() -> None:
        run_missing(
            runs(given.data),
            PAGES / name,
            given.data,
            given.only,
            given.fresh,
            lambda run, digest: study(run, given.data, digest),
        )
        write_page(name)

    return exit_code(name, work)


def run_missing(
    runs: Sequence[R], page: Path, data: Path, only: list[str] | None, fresh: bool, study: Callable[[R, str], None]
) -> None:
    """Calls `study` with each run whose report is missing or of another digest, or with all if `fresh`.

    `only` names some of the runs. Raises InputError for an unknown name; runs whose networks are absent are skipped.
    """
    keep_freed_memory()
    if unknown := set(only or ()) - {run.name for run in runs}:
        raise InputError(f"--only {sorted(unknown)[0]}: no such run; there are {', '.join(run.name for run in runs)}")
    digests = data_digests(data)
    for run in runs:
        if run.name not in (only or [run.name]):
            continue
        if absent := [str(file) for file in map(file_of, run.models) if not file.exists()]:
            Console(stderr=True).print(f"{run.name}: not run, no such file: {', '.join(absent)}")
        elif fresh or known_digest(page / run.name) != run.digest(digests[run.data]):
            Console(stderr=True).print(run.name)
            study(run, run.digest(digests[run.data]))


def data_digests(data: Path) -> Mapping[str, str]:
    """The digest of each data set, by the name of its folder in `data`."""
    return {"camvid": data_digest(data / "camvid"), "cifar10": open_classification(data / "cifar10", "test").list_hash}


def known_digest(report: Path) -> str | None:
    """Digest of the report in a folder; None where there is none."""
    file = report / "report.json"
    return str(json.loads(file.read_text())["digest"]) if file.exists() else None
