"""How many dropout passes does a classifier need? Its NLL and accuracy on labelled images, by number of passes.

    python demos/ensemble_size_curve.py MODEL [DATA [PASSES]]

MODEL: a pretrained name or a .safetensors file with dropout; DATA: the folder of CIFAR or of SPLIT/CLASS/*.jpg.
"""

import sys
from pathlib import Path

import torch

from classification.data.open import open_classification
from classification.evaluate import Classifier, SizeMetrics, batches
from classification.opening import open_classifier

BAR = 50


def main(model: str = "cifar10-resnet18-mc-smooth", data: str = "cifar10", passes: str = "20") -> None:
    network, meta = open_classifier(model)
    images = open_classification(Path(data), "test")
    classifier = Classifier([network], meta.mean, meta.std, torch.device("cpu"), seed=0)
    sizes = range(1, int(passes) + 1)
    metrics = SizeMetrics(len(meta.classes), sizes)
    for batch in batches(images, meta.height):  # one pass over the images: the mean after each dropout pass is measured
        metrics.update(classifier.by_size(batch, "bnn", sizes[-1]), batch[2])

    curve = metrics.curve()
    best, worst = (choose(point["nll"] for point in curve) for choose in (min, max))
    print(f"{images.name}, {len(images)} images; the bar is the NLL above its best, {best:.4f}")
    for point in curve:
        bar = "#" * round(BAR * (point["nll"] - best) / max(worst - best, 1e-9))
        print(f"{point['n']:3d} passes  NLL {point['nll']:.4f}  accuracy {point['accuracy']:.1%}  {bar}")


if __name__ == "__main__":
    main(*sys.argv[1:])
