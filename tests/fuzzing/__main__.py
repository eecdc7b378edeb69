"""Damaged files of every kind, opened as the product opens them: none may end in a traceback, hang or fill the memory.

PYTHONPATH=tests python -m fuzzing --count 400 --kinds image video --keep found        # the figures as JSON
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch

from fuzzing.kinds import KINDS, Kind
from fuzzing.trial import Trial, try_file
from steadyseg.core.system.files import write_atomic

MAX_ABOVE_BYTES = 2 * 2**30
"""Memory beyond the use of the undamaged files."""
GOOD_ENDS = ("whole", "refused")


def fuzz(name: str, kind: Kind, count: int, folder: Path, keep: Path | None) -> dict[str, Any]:
    """Figures of one kind of file. Undamaged files must pass; a file's number decides its damage."""
    originals = kind.seeds(folder)
    whole = [try_file(kind.stages, path) for path in originals]
    for path, trial in zip(originals, whole, strict=True):
        if trial.end != "whole":
            raise RuntimeError(f"{path} is whole and ends in {trial.end}: {trial.why}")
    usual = max(trial.peak_bytes for trial in whole)
    trials, found = list[Trial](), list[str]()
    for number in range(count):
        dice = Random(f"{name} {number}")
        original = dice.choice(originals)
        damaged = folder / f"damaged{original.suffix}"
        damaged.write_bytes(kind.damage(original.read_bytes(), dice))
        trials.append(trial := try_file(kind.stages, damaged))
        above = trial.peak_bytes - usual
        if trial.end not in GOOD_ENDS or above > MAX_ABOVE_BYTES:
            found.append(
                f"{number} ({original.name}): {trial.end} {trial.why} after {trial.stages}, {above >> 20} MB above"
            )
            print(f"{name} {found[-1]}", file=sys.stderr)
            if keep:
                write_atomic(keep / f"{name.replace(' ', '-')}-{number}{original.suffix}", damaged.read_bytes())
    return summary(trials, found, usual)


def summary(trials: Sequence[Trial], found: list[str], usual: int) -> dict[str, Any]:
    reached = Counter(stage for trial in trials for stage in trial.stages)
    return {
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
    parser.add_argument("--count", type=int, default=200, help="number of files of each kind")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--keep", type=Path, help="a folder that is there, for the files that broke a rule")
    given = parser.parse_args()
    torch.set_num_threads(1)  # and none of this process's own: its children are forks
    record = {}
    for name in given.kinds:
        with tempfile.TemporaryDirectory() as folder:
            record[name] = fuzz(name, KINDS[name], given.count, Path(folder), given.keep)
    print(json.dumps(record, indent=1))
    return int(any(kind["found"] or 2 * kind["passed_first_check"] < kind["inputs"] for kind in record.values()))


if __name__ == "__main__":
    sys.exit(main())
