"""Reports of studies that are kept while their networks, data and settings stay the same: docs/studies/PAGE/NAME."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from rich.console import Console

from steadyseg.classification.data.open import open_classification
from steadyseg.core.errors import InputError
from steadyseg.core.system.machine import keep_freed_memory
from steadyseg.studies.harness.networks import file_of
from steadyseg.studies.harness.study import data_digest


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
