"""Measures the trained classifiers and writes the record, the page and its figures in docs/studies/classification.

    python -m steadyseg.studies.classification --data ../shared/data/cifar10 [--fresh]

The checkpoints are those of runs/classification (`--commands` prints what trains them); what was measured is kept while
they and the data stay the same.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from steadyseg.app.console import track
from steadyseg.classification.data.labelled import ClassificationSet
from steadyseg.classification.data.open import open_classification
from steadyseg.classification.evaluate import Classifier as Ensemble
from steadyseg.classification.evaluate import SizeMetrics, batches
from steadyseg.classification.pretrained import build_members, read_classifier
from steadyseg.core.model.checkpoint import read_meta
from steadyseg.core.system.machine import keep_freed_memory
from steadyseg.studies.classification.effects import FEW, MANY, OFF
from steadyseg.studies.classification.matrix import EVERY, Classifier, subjects
from steadyseg.studies.classification.plots import write_plots
from steadyseg.studies.classification.tables import measured_of
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.per_picture import PerPicture
from steadyseg.studies.harness.study import PAGES, Cache, digest_of_file, exit_code, origin

PAGE = PAGES / "classification"
SAMPLES = 50


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="CIFAR-10 folder")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there already")
    parser.add_argument("--commands", action="store_true", help="only print the trainings")
    given = parser.parse_args()
    if given.commands:
        print("\n".join(one.command for one in EVERY))
        return 0
    return exit_code("classification", lambda: run(given.data, given.fresh))


def run(data: Path, fresh: bool) -> None:
    """Measures what is missing, then writes the document from what is there."""
    keep_freed_memory()  # a fifth of the time would be page faults
    cache = Cache(PAGE / "record.json")
    test = open_classification(data, "test")
    for name, members in subjects().items():
        absent = [one.name for one in members if not one.file.exists()]
        if absent:
            Console(stderr=True).print(f"not measured, not trained here: {', '.join(absent)}")
            continue
        digest = "-".join([test.list_hash, *(digest_of_file(one.file) for one in members)])
        if fresh or cache.get(name, digest) is None:
            cache.put(name, digest, measure(name, members, test), origin())
    write_plots(measured_of(cache.record), PAGE)
    write_page("classification")


def measure(name: str, members: list[Classifier], test: ClassificationSet) -> dict[str, Any]:
    """Figures with dropout off (n = 0; for an ensemble of all members), and by the number of dropout passes."""
    models = [read_classifier(member.file) for member in members]
    networks, meta = build_members(models), models[0].meta
    ensemble = Ensemble(networks, meta.mean, meta.std, torch.device("cpu"))
    off = SizeMetrics(len(meta.classes), [0] if len(members) == 1 else range(1, len(members) + 1))
    on = SizeMetrics(len(meta.classes), range(1, SAMPLES + 1)) if ensemble.has_dropout else None
    pictures = PerPicture((OFF, FEW, MANY))
    every = list(batches(test, meta.height))
    for batch in track(every, name):
        labels = batch[2]
        off.update(pictures.watch(ensemble.by_size(batch, "dnn", 1), labels, off.sizes), labels)
        if on:
            on.update(pictures.watch(ensemble.by_size(batch, "bnn", SAMPLES), labels, on.sizes), labels)
    last = max(off.full)
    found: dict[str, Any] = {
        "off": off.full[last].figures() | {"reliability": off.full[last].details()["reliability"]},
        "images": len(test),
        "trained": [describe_training(one) for one in members],
    }
    if len(members) == 1:
        found["pictures"] = pictures.record()
    if on:
        found |= {"curve": on.curve(), "passes": on.rows()}
    return found


def describe_training(one: Classifier) -> dict[str, Any]:
    """Duration and hardware of the training, from the checkpoint's record."""
    told = read_meta(one.file).training
    return {key: told.get(key) for key in ("hours_of_last_start", "machine", "images")}


if __name__ == "__main__":
    sys.exit(main())
