"""Runs the trainings of the study one after the other.

    python -m steadyseg.studies.transformers.train --data cifar10-jpeg --runs runs/transformers [--only NAME ...]

A row that is done is kept, and one that was interrupted goes on after its last whole epoch, so the same command starts
and resumes. Several commands may work side by side in one folder, each on its core (`taskset -c 0 python -m ...`): what
one of them trains the others leave to it. `--list` prints the rows with the epochs each has reached.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.system.files import lock
from steadyseg.core.training.run_folder import CONFIG_NAME
from steadyseg.studies.harness.study import exit_code
from steadyseg.studies.transformers.build_up import build_up
from steadyseg.studies.transformers.rates import chosen_rate
from steadyseg.studies.transformers.rows import PILOTS, ROWS, Row

LOG_NAME = "log.jsonl"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with CIFAR-10's train.zip and test.zip")
    parser.add_argument("--runs", type=Path, required=True, help="folder of the run folders")
    parser.add_argument("--only", nargs="*", help="only rows whose names begin so")
    parser.add_argument("--loaders", type=int, default=0, help="processes that prepare batches; the same on resuming")
    parser.add_argument("--list", action="store_true", help="only print the rows and the epochs that each has reached")
    given = parser.parse_args()
    if given.list:
        print("\n".join(state_of(row, given.runs) for row in every_row(given.runs)))
        return 0
    try:
        return exit_code("transformers", lambda: run_all(given.data, given.runs, given.only, given.loaders))
    except CheckFailed as error:
        print(f"transformers: {error}", file=sys.stderr)
        return 1


def every_row(runs: Path) -> Iterator[Row]:
    """Yields the rows of the table, then those of the build-up that its finished trainings lead to."""
    yield from ROWS
    yield from build_up(lambda row: final_accuracy(row, runs))


def selected(runs: Path, only: list[str] | None) -> Iterator[Row]:
    """Returns the rows whose names begin with one of `only`, or every row. InputError for a name that no row has."""
    names = [row.name for row in every_row(runs)]
    if unknown := [start for start in only or () if not any(name.startswith(start) for name in names)]:
        raise InputError(f"--only {unknown[0]}: no such row; expected {', '.join(names)}")
    return (row for row in every_row(runs) if row.name.startswith(tuple(only or ("",))))


def run_all(data: Path, runs: Path, only: list[str] | None, loaders: int) -> None:
    """Trains what is missing. InputError for an unknown name, CheckFailed where a training failed."""
    rows = selected(runs, only)
    runs.mkdir(parents=True, exist_ok=True)
    if failed := [row.name for row in rows if not has_turn(row, data, runs, loaders)]:
        raise CheckFailed(f"these trainings failed: {', '.join(failed)}; see the log")


def has_turn(row: Row, data: Path, runs: Path, loaders: int) -> bool:
    """Trains a row unless another command does; returns False where the training failed."""
    with (runs / f".{row.name}").open("a") as held:
        if lock(held, for_children=False):
            return train(row, data, runs, loaders)
    print(f"{row.name}: another command is at work on it", flush=True)
    return True


def train(row: Row, data: Path, runs: Path, loaders: int) -> bool:
    """Trains a row to its end, from where it stopped, and returns whether it has its model; a failure is printed."""
    if row.model(runs).exists():
        return True
    resume = ["--resume"] if (row.folder(runs) / CONFIG_NAME).exists() else []
    rate = wait_for_rate(runs) if row.needs_rate else None
    if row.needs_rate and rate is None:
        print(
            f"{row.name}: not begun, as the trainings that choose its learning rate (rate-...) are not done", flush=True
        )
        return False
    flags = [*row.arguments(data, runs, rate), "--config", f"loaders={loaders}", *resume]
    print(f"{row.name}: steadyseg train classification {' '.join(flags)}", flush=True)
    command = [sys.executable, "-m", "steadyseg.app.cli", "train", "classification", *flags]
    code = subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1", "TERM": "dumb"}).returncode
    print(f"{row.name}: exit code {code}", flush=True)
    return code == 0


def wait_for_rate(runs: Path, every_s: float = 30.0) -> float | None:
    """Returns the learning rate that the pilots chose, after the end of those that other commands train; None where
    some are missing."""
    pilots = [row for rows in PILOTS.values() for row in rows]
    while (rate := chosen_rate(lambda pilot: final_accuracy(pilot, runs))) is None:
        if not any(is_trained_elsewhere(row, runs) for row in pilots):
            break
        time.sleep(every_s)
    return rate


def is_trained_elsewhere(row: Row, runs: Path) -> bool:
    """Returns True if another command is training this row now."""
    with (runs / f".{row.name}").open("a") as held:
        return not lock(held, for_children=False)


def epochs_of(row: Row, runs: Path) -> list[dict[str, Any]]:
    """Returns the log's records of the epochs done; of an epoch that was interrupted and repeated, the last."""
    log = row.folder(runs) / LOG_NAME
    events = map(json.loads, log.read_text().splitlines() if log.exists() else ())
    return list({event["epoch"]: event for event in events if event["event"] == "epoch"}.values())


def final_accuracy(row: Row, runs: Path) -> float | None:
    """Returns the accuracy of a finished training on the held-out pictures, else None."""
    return float(epochs_of(row, runs)[-1]["metrics"]["accuracy"]) if row.model(runs).exists() else None


def state_of(row: Row, runs: Path) -> str:
    """Returns a line: name, epochs done of all, seconds an epoch, and the last held-out figures."""
    epochs = epochs_of(row, runs)
    if not epochs:
        return f"{row.name:32} {0:3}/{row.epochs}"
    measured = [epoch["metrics"] for epoch in epochs if epoch["metrics"]]
    figures = " ".join(f"{name} {value:.4f}" for name, value in measured[-1].items()) if measured else ""
    done, seconds = epochs[-1]["epoch"], epochs[-1]["seconds"]
    return f"{row.name:32} {done:3}/{row.epochs}  {seconds:.0f} s an epoch  {figures}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
