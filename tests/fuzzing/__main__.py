"""Damaged files of every kind, opened as the product opens them: none may end in a traceback, hang or fill the memory.

PYTHONPATH=tests python -m fuzzing --count 2000        # 15 minutes on two cores; writes the committed record

PYTHONPATH=tests python -m fuzzing --kinds image --count 400 --keep found --json images.json
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import torch

from fuzzing.kinds import KINDS, Kind
from fuzzing.trial import SECONDS, Trial, try_file
from steadyseg.core.system.files import write_atomic
from steadyseg.studies.harness.study import PAGES, origin

PAGE = PAGES / "reliability"
MAX_ABOVE_BYTES = 2 * 2**30
"""Memory beyond the use of the undamaged files."""
GOOD_ENDS = ("whole", "refused")


def fuzz(name: str, kind: Kind, numbers: range, folder: Path, keep: Path | None) -> dict[str, Any]:
    """Figures of one kind of file. Undamaged files must pass; a file's number decides its damage."""
    originals = kind.seeds(folder)
    whole = [try_kind(kind, path) for path in originals]
    for path, trial in zip(originals, whole, strict=True):
        if trial.end != "whole":
            raise RuntimeError(f"{path} is whole and ends in {trial.end}: {trial.why}")
    usual = max(trial.peak_bytes for trial in whole)
    trials, found = list[Trial](), list[str]()
    for number in numbers:
        dice = Random(f"{name} {number}")
        original = dice.choice(originals)
        damaged = folder / f"damaged{original.suffix}"
        damaged.write_bytes(kind.damage(original.read_bytes(), dice))
        trial = try_kind(kind, damaged)
        trials.append(trial)
        above = trial.peak_bytes - usual
        if trial.end not in GOOD_ENDS or above > MAX_ABOVE_BYTES:
            found.append(
                f"{number} ({original.name}): {trial.end} {trial.why} after {trial.stages}, {above >> 20} MB above"
            )
            print(f"{name} {found[-1]}", file=sys.stderr)
            if keep:
                write_atomic(keep / f"{name.replace(' ', '-')}-{number}{original.suffix}", damaged.read_bytes())
    return summary(trials, found, usual, [path.name for path in originals])


def try_kind(kind: Kind, path: Path) -> Trial:
    """The trial of one file, with the memory of the process that had the work."""
    if kind.server is None:
        return try_file(kind.stages, path)
    running = kind.server()
    running.reset_peak()
    return replace(try_file(kind.stages, path), peak_bytes=running.peak_bytes())


def summary(trials: Sequence[Trial], found: list[str], usual: int, originals: list[str]) -> dict[str, Any]:
    """Summary of the trials for the record."""
    reached = Counter(stage for trial in trials for stage in trial.stages)
    return {
        "undamaged": originals,
        "inputs": len(trials),
        "passed_first_check": sum(bool(trial.stages) for trial in trials),
        "reached": dict(reached.most_common()),
        "ends": dict(Counter(trial.end for trial in trials)),
        "different_refusals": len({trial.why.split("(")[-1] for trial in trials if trial.end == "refused"}),
        "slowest_s": round(max(trial.seconds for trial in trials), 1),
        "most_memory_above_undamaged_mb": max(0, max(trial.peak_bytes for trial in trials) - usual) >> 20,
        "found": found,
    }


def main() -> int:
    """Returns 0, or 1 where a file broke a rule or too few files passed the first check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000, help="number of files, all kinds together")
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first file of each kind; the number decides the damage"
    )
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--json", type=Path, default=PAGE / "fuzzing.json")
    parser.add_argument("--keep", type=Path, help="folder for the files that broke a rule")
    parser.add_argument("--seeds", type=Path, help="a folder whose undamaged graphs are used, or made (3 minutes)")
    given = parser.parse_args()
    torch.set_num_threads(1)  # and none of this process's own: its children are forks
    if given.keep:
        given.keep.mkdir(parents=True, exist_ok=True)
    record: dict[str, Any] = json.loads(given.json.read_text()) if given.json.exists() else {}
    record["limits"] = {"seconds": SECONDS, "memory_above_mb": MAX_ABOVE_BYTES >> 20}
    with tempfile.TemporaryDirectory() as folder:
        for name in given.kinds:
            place = (given.seeds or Path(folder)) / name
            place.mkdir(parents=True, exist_ok=True)
            numbers = range(given.first, given.first + given.count // len(given.kinds))
            record[name] = origin() | fuzz(name, KINDS[name], numbers, place, given.keep)
            write_atomic(given.json, (json.dumps(record, indent=1) + "\n").encode())
    print(json.dumps({name: record[name] for name in given.kinds}, indent=1))
    kinds = [record[name] for name in given.kinds]
    return int(any(kind["found"] or 2 * kind["passed_first_check"] < kind["inputs"] for kind in kinds))


if __name__ == "__main__":
    sys.exit(main())
