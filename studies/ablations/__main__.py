"""Trains the ablations' networks as far as time allows, measures them and writes docs/studies/ablations.

    python -m steadyseg.studies.ablations --data ../shared/data/cifar10 [--hours 6]

A training that was stopped resumes after its last whole epoch, and the list where it ended, so the command can be run
as often as there is time. A measured row is kept while checkpoint and data stay the same. --hours 0 trains nothing.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from steadyseg.classification.data.labelled import ClassificationSet
from steadyseg.classification.data.open import open_classification
from steadyseg.classification.evaluate import Classifier, batches
from steadyseg.classification.pretrained import read_classifier
from steadyseg.classification.train import prepare_classification
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.system.machine import keep_freed_memory
from steadyseg.core.training.loop import EpochDone
from steadyseg.core.training.parts import Run
from steadyseg.core.training.run import choose_precision, train
from steadyseg.core.training.run_folder import CONFIG_NAME, MODEL_NAME
from steadyseg.studies.ablations.matrix import Variant, to_train
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.per_picture import PerPicture
from steadyseg.studies.harness.study import PAGES, Cache, digest_of_weights, exit_code, origin

SAMPLES = 50
"""Dropout passes, as published."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="CIFAR-10 folder")
    parser.add_argument("--hours", type=float, default=6.0, help="no new epoch is begun after so long")
    given = parser.parse_args()
    return exit_code("ablations", lambda: work(given.data, given.hours))


def work(data: Path, hours: float) -> None:
    """Trains and measures what time allows, then writes the page."""
    keep_freed_memory()
    cache = Cache(PAGES / "ablations" / "record.json")
    ends = time.monotonic() + 3600 * hours
    test = open_classification(data, "test")
    for variant, seed in to_train():
        if train_variant(variant, seed, data, ends):
            measure(variant, seed, test, cache)
    write_page("ablations")


def train_variant(variant: Variant, seed: int, data: Path, ends: float) -> bool:
    """Starts or resumes a training; returns True once its model is there."""
    run, console = variant.run(seed), Console(stderr=True)
    if (run / MODEL_NAME).exists():
        return True
    if time.monotonic() >= ends:
        return False
    folder = Run(run, torch.device("cpu"), resume=(run / CONFIG_NAME).exists())
    config = choose_precision(variant.config(data, seed), folder)
    for event in train(prepare_classification(config, folder), config, folder):
        if isinstance(event, EpochDone):
            console.print(f"{run.name}: epoch {event.epoch} loss {event.loss:.4f} {event.seconds:.0f} s")
            if time.monotonic() >= ends and event.epoch < config.loop.epochs:
                return False
    return True


def measure(variant: Variant, seed: int, test: ClassificationSet, cache: Cache) -> None:
    """Measures the mean of 50 dropout passes on every picture and puts it into the cache."""
    file = variant.run(seed) / MODEL_NAME
    digest = f"{digest_of_weights(file)}-{test.list_hash}"
    name = f"{variant.name}-{seed}"
    if cache.get(name, digest) is not None:
        return
    model = read_classifier(file)
    meta = model.meta
    classifier = Classifier([model.network()], meta.mean, meta.std, torch.device("cpu"))
    metrics = StreamingMetrics(len(meta.classes))
    pictures = PerPicture()
    for batch in batches(test, meta.height):
        labels = batch[2]
        *_, mean = classifier.by_size(batch, "bnn", SAMPLES)
        metrics.update(mean.probs, labels)
        pictures.add(mean, labels)
    result = metrics.result()
    told = json.loads((variant.run(seed) / CONFIG_NAME).read_text())
    rows: dict[str, Any] = {
        "figures": {key: result[key] for key in ("nll", "accuracy", "ece")},
        "images": len(test),
        "epochs": told["loop"]["epochs"],
        **pictures.record(),
    }
    cache.put(name, digest, rows, origin())


if __name__ == "__main__":
    sys.exit(main())
