"""Trains the ablations' networks as far as time allows, measures them and writes docs/studies/ablations.

    python -m steadyseg.studies.ablations --data ../shared/data/cifar10 [--hours 6]

A training that was stopped resumes after its last whole epoch, and the list where it ended, so the command can be run
as often as there is time. A measured row is kept while checkpoint and data stay the same. --hours 0 trains nothing.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch

from steadyseg.classification.data.labelled import ClassificationSet
from steadyseg.classification.data.open import open_classification
from steadyseg.classification.evaluate import Classifier, batches
from steadyseg.classification.pretrained import read_classifier
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.system.machine import keep_freed_memory
from steadyseg.core.training.run_folder import CONFIG_NAME
from steadyseg.studies.ablations.matrix import to_train
from steadyseg.studies.ablations.per_picture import PerPicture
from steadyseg.studies.harness.networks import PROJECT
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.study import PAGES, Cache, digest_of_weights, exit_code, origin
from steadyseg.studies.harness.trainings import Queue, run_jobs

SAMPLES = 50
"""Dropout passes, as published."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="CIFAR-10 folder")
    parser.add_argument("--hours", type=float, default=6.0, help="trainings are stopped after so long")
    given = parser.parse_args()
    return exit_code("ablations", lambda: work(given.data, given.hours))


def work(data: Path, hours: float) -> None:
    """Trains and measures what time allows, then writes the page."""
    keep_freed_memory()
    rows, queue = to_train(), Queue(data, PROJECT / "runs" / "ablations", "cpu", 60 * hours)
    left = run_jobs(rows, queue)
    test, cache = open_classification(data, "test"), Cache(PAGES / "ablations" / "record.json")
    for row in rows:
        if row.name not in left:
            measure(queue.model(row.name), test, cache)
    write_page("ablations")


def measure(file: Path, test: ClassificationSet, cache: Cache) -> None:
    """Measures the mean of 50 dropout passes on every picture and puts it into the cache."""
    digest = f"{digest_of_weights(file)}-{test.list_hash}"
    name = file.parent.name
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
    told = json.loads((file.parent / CONFIG_NAME).read_text())
    rows: dict[str, Any] = {
        "figures": {key: result[key] for key in ("nll", "accuracy", "ece")},
        "images": len(test),
        "epochs": told["loop"]["epochs"],
        **pictures.record(),
    }
    cache.put(name, digest, rows, origin())


if __name__ == "__main__":
    sys.exit(main())
