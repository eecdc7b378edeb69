"""Measures the trained networks and writes the record and the tables of docs/studies/transformers.

    python -m steadyseg.studies.transformers.measure --data ../shared/data --runs runs/transformers [--only NAME ...]

Each network sees both test sets (CIFAR-10's pictures as JPEG, and 1,000 of the official ones) and the first of the
pictures that it was trained on, unaugmented. A measurement is kept while the model and the pictures stay the same. The
training pictures have lost detail to JPEG (quality 75), so the official ones are slightly foreign to the networks.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from steadyseg.app.console import track
from steadyseg.classification.data.labelled import ClassificationSet
from steadyseg.classification.data.open import open_classification, open_trained
from steadyseg.classification.evaluate import Classifier, SizeMetrics, batch_size, batches
from steadyseg.classification.pretrained import read_classifier, require_classes
from steadyseg.core.system.machine import choose_device, keep_freed_memory
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.per_picture import PerPicture
from steadyseg.studies.harness.study import PAGES, Cache, digest_of_weights, exit_code, origin
from steadyseg.studies.transformers.rows import PILOTS, Row
from steadyseg.studies.transformers.train import epochs_of, selected

RECORD = PAGES / "transformers" / "record.json"
JPEG, OFFICIAL, TRAINED = "jpeg", "official", "trained"
FOLDERS = {JPEG: "cifar10-jpeg", OFFICIAL: "cifar10"}
"""Their folders in --data: 10,000 and 1,000 pictures of CIFAR-10's test split."""
PASSES = {JPEG: 5, OFFICIAL: 50, TRAINED: 1}
"""Dropout passes of a network with dropout, beside one pass without."""
KEYS = ("nll", "accuracy", "ece", "brier", "aurc")
MOST_TRAINED = 2000
"""Pictures of the training whose loss is measured."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with cifar10-jpeg/ and cifar10/")
    parser.add_argument("--runs", type=Path, required=True, help="folder of the run folders")
    parser.add_argument("--only", nargs="*", help="only rows whose names begin so")
    given = parser.parse_args()
    return exit_code("transformers", lambda: measure_all(given.data, given.runs, given.only))


def measure_all(data: Path, runs: Path, only: list[str] | None, record: Path = RECORD) -> None:
    """Measures every finished training that is not measured yet, prints a line for each, and writes the page."""
    keep_freed_memory()
    cache = Cache(record)
    tests = {name: open_classification(data / folder, "test") for name, folder in FOLDERS.items()}
    for row in selected(runs, only):
        if not row.model(runs).exists():
            continue
        digest = "-".join([digest_of_weights(row.model(runs)), *(test.list_hash for test in tests.values())])
        rows = cache.get(row.name, digest)
        if rows is None:
            rows = measure(row, data, runs, tests)
            cache.put(row.name, digest, rows, origin())
            cache = Cache(record)
        print(line_of(row, rows), flush=True)
    if record == RECORD:
        write_page("transformers")


def measure(row: Row, data: Path, runs: Path, tests: dict[str, ClassificationSet]) -> dict[str, Any]:
    """Returns a row of the record: how it was trained, and its figures in fp32 at temperature 1 by set of pictures.

    A training that chose a setting (`PILOTS`) has no figures of test.
    """
    model = row.model(runs)
    opened, epochs = read_classifier(model), epochs_of(row, runs)
    network = opened.network()
    found: dict[str, Any] = {
        "parameters": sum(weight.numel() for weight in network.parameters()),
        "images": opened.meta.training["images"],
        "epochs": len(epochs),
        "minutes": sum(epoch["seconds"] for epoch in epochs) / 60,
        "held_out": epochs[-1]["metrics"],
        "learning_rate": opened.meta.training["config"]["loop"]["learning_rate"],
    }
    if row.name in {pilot.name for pilots in PILOTS.values() for pilot in pilots}:
        return found
    trained = open_trained(data / FOLDERS[JPEG], opened.meta, str(model))
    sets = tests | {TRAINED: trained.subset(range(min(MOST_TRAINED, len(trained))))}
    classifier = Classifier([network], opened.meta.mean, opened.meta.std, choose_device("auto"))
    for name, pictures in sets.items():
        require_classes(pictures.classes, opened.meta.classes, pictures.name, str(model))
        found[name] = figures_of(classifier, pictures, opened.meta.height, PASSES[name], f"{row.name} {name}")
    return found


def figures_of(
    classifier: Classifier, pictures: ClassificationSet, side: int, passes: int, title: str
) -> dict[str, Any]:
    """Returns the figures with dropout off and, of a network with dropout, by number of passes; and which pictures one
    pass without dropout has right."""
    count = len(pictures.classes)
    modes = {"dnn": SizeMetrics(count, [0])}
    if classifier.has_dropout:
        modes["bnn"] = SizeMetrics(count, range(1, passes + 1))
    kept = PerPicture([0])
    for batch in track(batches(pictures, side), title, total=-(-len(pictures) // batch_size(side))):
        for mode, metrics in modes.items():
            made = classifier.by_size(batch, mode, metrics.sizes[-1] or 1)
            metrics.update(kept.watch(made, batch[2], metrics.sizes), batch[2])
    right = kept.record()["0"]["right"]
    off = modes["dnn"].full[0].figures()
    found = {"images": len(pictures), "off": {key: off[key] for key in KEYS}, "right": f"{int(right, 2):x}"}
    if "bnn" in modes:
        found["passes"] = [{key: row[key] for key in ("n", *KEYS)} for row in modes["bnn"].rows()]
    return found


def line_of(row: Row, rows: dict[str, Any]) -> str:
    """Returns accuracy, NLL and ECE on each set, with dropout off and, where there is dropout, with all passes."""
    parts = [f"{row.name:32}"]
    for name in PASSES:
        found = rows.get(name, {"off": rows["held_out"]} if name == JPEG else {})
        shown = {"held out" if name not in rows else name: found["off"]} if found else {}
        if "passes" in found:
            shown[f"{name} N {found['passes'][-1]['n']}"] = found["passes"][-1]
        parts += [
            f"{what}: {100 * one['accuracy']:.2f} % NLL {one['nll']:.4f} ECE {100 * one['ece']:.2f} %"
            for what, one in shown.items()
        ]
    return "  ".join(parts)


if __name__ == "__main__":
    sys.exit(main())
