"""The ablation of the training recipe: a table of small trainings, one after the other; writes docs/studies/training.

    python -m steadyseg.studies.training --data ../shared/data/camvid [--only NAME ...] [--runs runs/training]
    python -m steadyseg.studies.training --document

Each row is a `steadyseg train seg` in runs/training/NAME; a row that was interrupted goes on after its last whole
epoch, a row that is done is kept. What is measured lies beside its model in figures.json. --document copies the figures
that are there into the record and writes the page.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.system.files import write_atomic
from steadyseg.core.system.machine import keep_freed_memory
from steadyseg.core.training.run_folder import CONFIG_NAME, MODEL_NAME
from steadyseg.studies.harness.bundle import round_figures
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.study import PAGES, digest_of_file, exit_code, origin
from steadyseg.studies.training.measure import HeldOut, measure, training_hours
from steadyseg.studies.training.recipes import Row, all_rows

FIGURES_NAME = "figures.json"
RUNS = Path("runs/training")
RECORD = PAGES / "training" / "record.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="CamVid folder")
    parser.add_argument("--runs", type=Path, default=RUNS, help="folder of the trainings")
    parser.add_argument("--only", nargs="*", help="only these rows, by name")
    parser.add_argument("--list", action="store_true", help="only print the rows' names, in order")
    parser.add_argument("--document", action="store_true", help="only write the record and the page")
    given = parser.parse_args()
    if given.list:
        print("\n".join(row.name for row in all_rows()))
        return 0
    if given.document:
        return exit_code("training", lambda: collect(given.runs))
    return exit_code("training", lambda: run_all(given.data, given.runs, given.only))


def run_all(camvid: Path | None, runs: Path, only: list[str] | None) -> None:
    """Trains and measures what is missing, in the table's order."""
    if camvid is None:
        raise InputError("--data lacks; give the CamVid folder")
    rows = all_rows()
    unknown = set(only or ()) - {row.name for row in rows}
    if unknown:
        raise InputError(f"--only {sorted(unknown)[0]}: no such row; there are {', '.join(row.name for row in rows)}")
    keep_freed_memory()
    held_out = HeldOut(camvid)
    for row in rows:
        if row.name in (only or [row.name]):
            train(row, camvid, runs)
            measure_row(row, held_out, runs)


def train(row: Row, camvid: Path, runs: Path) -> None:
    """Starts or resumes a training unless its model is there. Raises CheckFailed where it does not end well."""
    folder = row.folder(runs)
    if (folder / MODEL_NAME).exists():
        return
    absent = [name for name in row.needs() if not (runs / name / MODEL_NAME).exists()]
    if absent:
        raise InputError(f"{row.name} begins with what {absent[0]} leaves; train that first")
    resume = ["--resume"] if (folder / CONFIG_NAME).exists() else []
    command = [sys.executable, "-m", "steadyseg.app.cli", "train", "seg", *row.flags(camvid, runs), *resume]
    Console(stderr=True).print(f"{row.name}: {' '.join(command[3:])}", soft_wrap=True)
    if code := subprocess.run(command).returncode:
        raise CheckFailed(f"{row.name}: the training ended with exit code {code}; see {folder}")


def measure_row(row: Row, held_out: HeldOut, runs: Path) -> None:
    """Writes the row's figures beside its model, unless they are of this model and slice."""
    folder = row.folder(runs)
    digest = f"{digest_of_file(folder / MODEL_NAME)}-{held_out.digest}"
    if read_figures(folder).get("digest") == digest:
        return
    Console(stderr=True).print(f"{row.name}: measuring")
    rows = measure(folder / MODEL_NAME, held_out.pairs, held_out.names) | {"hours": training_hours(folder)}
    command = " ".join(["steadyseg train seg", *row.flags(Path("CamVid"), RUNS)])
    record = {"digest": digest, "command": command, **origin(), "rows": round_figures(rows)}
    write_atomic(folder / FIGURES_NAME, (json.dumps(record, indent=1, sort_keys=True) + "\n").encode())


def collect(runs: Path) -> None:
    """Writes the record and the page's tables from the measured rows."""
    write_atomic(RECORD, (json.dumps(gather(runs), indent=1, sort_keys=True) + "\n").encode())
    write_page("training")


def gather(runs: Path) -> dict[str, Any]:
    """Measurements of the table's rows: the committed ones, replaced by those of runs that are here."""
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    now = {row.name: read_figures(row.folder(runs)) for row in all_rows()}
    return {
        row.name: now[row.name] or record.get(row.name) for row in all_rows() if now[row.name] or row.name in record
    }


def read_figures(folder: Path) -> dict[str, Any]:
    """Measurements of a run; empty where there are none."""
    file = folder / FIGURES_NAME
    return dict(json.loads(file.read_text())) if file.exists() else {}


if __name__ == "__main__":
    sys.exit(main())
