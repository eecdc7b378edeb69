"""Measures the trained networks on both test sets: CIFAR-10's pictures as JPEG, and 1,000 of the official ones.

    python -m studies.transformers.measure --data ../shared/data --runs runs/transformers [--only NAME ...]

The figures lie beside each model in figures.json and are kept while the model and the pictures stay the same. The
training pictures have lost detail to JPEG (quality 75), so the official ones are slightly foreign to the networks.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from app.console import track
from classification.data.labelled import ClassificationSet
from classification.data.open import open_classification
from classification.evaluate import DEFAULT_SAMPLES, Classifier, SizeMetrics, batch_size, batches
from classification.pretrained import read_classifier, require_classes
from core.system.files import write_atomic
from core.system.machine import choose_device, keep_freed_memory
from studies.harness.bundle import round_figures
from studies.harness.per_picture import PerPicture
from studies.harness.study import digest_of_weights, exit_code, origin
from studies.transformers.rows import PILOTS, Row
from studies.transformers.train import every_row

FIGURES_NAME = "figures.json"
TEST_SETS = {"jpeg": "cifar10-jpeg", "official": "cifar10"}
"""Their folders in --data: 10,000 and 1,000 pictures of CIFAR-10's test split."""
KEPT_SIZES = (0, 1, 2, DEFAULT_SAMPLES)
"""Passes (0: dropout off) whose pictures are kept one by one, for paired differences."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with cifar10-jpeg/ and cifar10/")
    parser.add_argument("--runs", type=Path, required=True, help="folder of the run folders")
    parser.add_argument("--only", nargs="*", help="only these rows, by name")
    given = parser.parse_args()
    return exit_code("transformers", lambda: measure_all(given.data, given.runs, given.only))


def measure_all(data: Path, runs: Path, only: list[str] | None) -> None:
    """Measures every finished training that is not measured yet, and prints a line for each."""
    keep_freed_memory()
    tests = {name: open_classification(data / folder, "test") for name, folder in TEST_SETS.items()}
    pilots = {row.name for rows in PILOTS.values() for row in rows}  # they chose a setting and are not compared
    for row in every_row(runs):
        if row.name in (only or [row.name]) and row.name not in pilots and row.model(runs).exists():
            print(line_of(row, measure_row(row, runs, tests)), flush=True)


def measure_row(row: Row, runs: Path, tests: dict[str, ClassificationSet]) -> dict[str, Any]:
    """Returns the figures by test set, from figures.json where that is of this model and these pictures."""
    model, file = row.model(runs), row.folder(runs) / FIGURES_NAME
    digest = "-".join([digest_of_weights(model), *(test.list_hash for test in tests.values())])
    if file.exists() and (found := json.loads(file.read_text()))["digest"] == digest:
        return dict(found["rows"])
    rows = {name: round_figures(measure(model, test, row.name)) for name, test in tests.items()}
    record = {"digest": digest, **origin(), "rows": rows}
    write_atomic(file, (json.dumps(record, indent=1, sort_keys=True) + "\n").encode())
    return rows


def measure(model: Path, test: ClassificationSet, name: str) -> dict[str, Any]:
    """Measures with the dropout off, and with 1 to 50 passes where there is dropout; in fp32, at temperature 1."""
    opened = read_classifier(model)
    meta = opened.meta
    require_classes(test.classes, meta.classes, test.name, str(model))
    classifier = Classifier([opened.network()], meta.mean, meta.std, choose_device("auto"))
    modes = {"dnn": SizeMetrics(len(meta.classes), [0])}
    if classifier.has_dropout:
        modes["bnn"] = SizeMetrics(len(meta.classes), range(1, DEFAULT_SAMPLES + 1))
    pictures = PerPicture(KEPT_SIZES)
    count = -(-len(test) // batch_size(meta.height))
    for batch in track(batches(test, meta.height), f"{name} {test.name}", total=count):
        for mode, metrics in modes.items():
            made = classifier.by_size(batch, mode, metrics.sizes[-1] or 1)
            metrics.update(pictures.watch(made, batch[2], metrics.sizes), batch[2])
    off = modes["dnn"].full[0]
    found = {"images": len(test), "off": off.figures() | off.details(), "pictures": pictures.record()}
    return found | ({"curve": modes["bnn"].curve(), "passes": modes["bnn"].rows()} if "bnn" in modes else {})


def line_of(row: Row, rows: dict[str, Any]) -> str:
    """Returns accuracy, NLL and ECE on each test set, with dropout off and, where there is dropout, with all passes."""
    parts = [f"{row.name:32}"]
    for name, found in rows.items():
        shown = {"off": found["off"]} | (
            {f"N {found['passes'][-1]['n']}": found["passes"][-1]} if "passes" in found else {}
        )
        parts += [
            f"{name} {when}: {100 * one['accuracy']:.2f} % NLL {one['nll']:.4f} ECE {100 * one['ece']:.2f} %"
            for when, one in shown.items()
        ]
    return "  ".join(parts)


if __name__ == "__main__":
    sys.exit(main())
