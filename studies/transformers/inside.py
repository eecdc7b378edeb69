"""Runs the studies of `steadyseg analyze` on the trained networks; the reports go to docs/studies/transformers.

    python -m steadyseg.studies.transformers.inside --data DATA --runs runs/transformers [--only STUDY ...] [--fresh]

A report is kept while its networks stay the same.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadyseg.app.cli import main as steadyseg
from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.system.files import write_atomic
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.study import PAGES, digest_of_weights, exit_code
from steadyseg.studies.transformers.rows import COMPARED, SEEDS
from steadyseg.studies.transformers.train import every_row

PAGE = PAGES / "transformers"
BOTH = tuple(f"adamw-{name}-{seed}" for seed in SEEDS for name, _ in COMPARED)
"""The compared networks, of each seed."""
DIGESTS = "digests.json"
"""By study: digest of the weights of each of its networks."""


@dataclass(frozen=True)
class Look:
    """One study of the trained networks."""

    networks: Sequence[str]
    data: str
    """Folder of the pictures."""
    flags: str


LOOKS = {
    "hessian": Look(
        (*BOTH, "adamw-vit6-gap-0"),
        "cifar10-jpeg",
        "--split trained --images 64 --config top=5 steps=0 tolerance=0.01 max_seconds=7200",
    ),
    "landscape": Look(BOTH, "cifar10-jpeg", "--split trained --images 128 --config points=11 max_seconds=7200"),
    "fourier": Look(BOTH, "cifar10", "--images 256"),
    "variance": Look(BOTH, "cifar10", "--images 256"),
    "similarity": Look(BOTH[: len(COMPARED)], "cifar10", "--images 256"),
    "reliability": Look(BOTH, "cifar10", "--config plots=false"),
    "lesion": Look(BOTH, "cifar10", "--images 1000 --config max_seconds=7200"),
    "robustness": Look(
        BOTH,
        "cifar10",
        "--only corruptions bands --images 500 --config severities=3 costly_images=200",
    ),
}
"""Mini-batches of the Hessian have 16 pictures, as published. An eigenvalue is iterated until it changes by less than
1 %: neighbours of nearly equal magnitude take many steps to tell apart, and their mean needs no more digits. The plots
of reliability hold pictures of the data, which are not passed on."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with cifar10-jpeg/ and cifar10/")
    parser.add_argument("--runs", type=Path, required=True, help="folder of the run folders")
    parser.add_argument("--only", nargs="*", help="only these studies")
    parser.add_argument("--fresh", action="store_true", help="run again what is there already")
    given = parser.parse_args()
    return exit_code("transformers", lambda: look_all(given.data, given.runs, given.only, given.fresh))


def look_all(data: Path, runs: Path, only: list[str] | None, fresh: bool, page: Path = PAGE) -> None:
    """Runs each study whose networks are trained and that has no report of them yet, then writes the page."""
    if unknown := sorted(set(only or ()) - set(LOOKS)):
        raise InputError(f"--only {unknown[0]}: no such study; expected {', '.join(LOOKS)}")
    models = {row.name: row.model(runs) for row in every_row(runs)}
    for study, look in LOOKS.items():
        trained = {name: models[name] for name in look.networks if models[name].exists()}
        if study not in (only or [study]) or not trained:
            continue
        digests = {name: digest_of_weights(model) for name, model in trained.items()}
        if not fresh and known_digests(page).get(study) == digests:
            continue
        words = ["analyze", study, *map(str, trained.values()), "--data", str(data / look.data), *look.flags.split()]
        if steadyseg([*words, "--output", str(page / study), "--overwrite"]):
            raise CheckFailed(f"steadyseg {' '.join(words)} has failed")
        notes = json.loads((page / study / "report.json").read_text())["notes"]
        if cut := [note for note in notes if "max_seconds" in note]:
            print(f"{study}: not whole ({cut[0]}); it is run again next time", flush=True)
            continue
        record = json.dumps(known_digests(page) | {study: digests}, indent=1, sort_keys=True)
        write_atomic(page / DIGESTS, (record + "\n").encode())
    if page == PAGE:
        write_page("transformers")


def known_digests(page: Path) -> dict[str, Any]:
    """Reads the digests of each report's networks. Another command may have added some since the last call."""
    file = page / DIGESTS
    return dict(json.loads(file.read_text())) if file.exists() else {}


if __name__ == "__main__":
    sys.exit(main())
