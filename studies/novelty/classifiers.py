"""Classifiers without dropout: novelty of out-of-distribution pictures, and confidence under corruption.

python -m steadyseg.studies.novelty.classifiers --data ../shared/data cifar10-resnet18-plain cifar10-resnet18-mc-smooth
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from steadyseg.app.open_model import find_model
from steadyseg.classification.data.labelled import ClassificationSet
from steadyseg.classification.data.open import open_classification
from steadyseg.core.corruptions.corruptions import BENCHMARK_CORRUPTIONS, corrupt
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.model.checkpoint import read_meta
from steadyseg.studies.harness.networks import rests_on
from steadyseg.studies.harness.target import DNN, TargetNetwork, open_target
from steadyseg.studies.novelty.by_network import flags, knowing, save
from steadyseg.studies.novelty.figures import auroc_of
from steadyseg.studies.novelty.samples import Data, drawing, spread_over

CORRUPTED, MADE, AT_ONCE = 250, 200, 250
"""Counts: test pictures under each corruption, made inputs of each kind (no pictures), pictures of a network call."""
SEVERITY = 3
CIFAR = ("cifar10", "--split", "held-out", "--mode", "dnn")
Pictures = Sequence[np.ndarray]


def main() -> None:
    given = flags(__doc__ or "").parse_args()
    torch.set_num_threads(1)
    for name in given.models:
        path = knowing(name, given.out / name, given.data, CIFAR)
        digest = rests_on(name, open_classification(given.data / "cifar10", "test").list_hash)
        save(given.out / name / "classifier.pickle", {"rests_on": digest, **measure(Path(path), Data(given.data))})


def measure(path: Path, data: Data) -> dict[str, Any]:
    """Figures of one network with its fitted temperature."""
    subject = open_target(str(path), "one", torch.device("cpu"))
    test, size = open_classification(data.folder / "cifar10", "test"), read_meta(find_model(str(path))).height
    clean, labels = views(test, range(len(test)), size), np.asarray(test.labels)
    inside, world = look(subject, clean, labels), subject.head
    assert world is not None
    places = spread_over(len(test), CORRUPTED)
    corrupted = {
        kind: {"one": look(subject, changed, labels[places])["figures"]}
        for kind, changed in (
            (kind, [corrupt(clean[i], kind, SEVERITY, 5, i) for i in places]) for kind in BENCHMARK_CORRUPTIONS
        )
    }
    foreign = {}
    for kind, pictures in others(data, size):
        seen = look(subject, pictures, None)
        foreign[kind] = {
            "pictures": len(pictures),
            "alarms": float(np.mean([world.reference.is_novel(one) for one in seen["novelty"]])),
            "auroc": {
                score: auroc_of(np.array(inside[score]), np.array(seen[score])) for score in ("novelty", "entropy")
            },
        }
    record = read_meta(path).novelty
    return {
        "stages": record["stages"],
        "own": record["about"],
        "pictures": len(test),
        "alarms": float(np.mean([world.reference.is_novel(one) for one in inside["novelty"]])),
        "clean": {"one": inside["figures"]},
        "corrupted_pictures": len(places),
        "corrupted": corrupted,
        "foreign": foreign,
    }


def views(data: ClassificationSet, places: Sequence[int], size: int) -> list[np.ndarray]:
    return [data.evaluation_view(data[place][0], size) for place in places]


def others(data: Data, size: int) -> Iterator[tuple[str, Pictures]]:
    """Pictures of classes that training never saw, and inputs that are no pictures."""
    folder = open_classification(data.folder / "cifar100", "test")
    yield "CIFAR-100", views(folder, range(len(folder)), size)
    draws = [drawing("classifier", number) for number in range(MADE)]
    yield "noise", [draw.integers(0, 256, (size, size, 3), dtype=np.uint8) for draw in draws]
    yield "one colour", [np.full((size, size, 3), draw.integers(0, 256, 3), np.uint8) for draw in draws]


def look(subject: TargetNetwork, pictures: Pictures, labels: np.ndarray | None) -> dict[str, Any]:
    """Scores of every picture (higher: more novel) and, with labels, the metrics over all pictures."""
    scores: dict[str, list[float]] = {"novelty": [], "entropy": []}
    metrics = StreamingMetrics(len(subject))
    for first in range(0, len(pictures), AT_ONCE):
        ((_, found),) = subject.predict(pictures[first : first + AT_ONCE], [DNN], seed=0)
        assert found.novelty is not None
        scores["novelty"] += found.novelty.score.tolist()
        scores["entropy"] += found.entropy.tolist()
        if labels is not None:
            metrics.update(found.probs, torch.from_numpy(labels[first : first + AT_ONCE]).long())
    if labels is None:
        return scores
    result = metrics.result()
    return scores | {"figures": {key: result[key] for key in ("accuracy", "nll", "ece", "ece_signed")}}


if __name__ == "__main__":
    main()
