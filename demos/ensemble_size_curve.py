"""NLL and accuracy of a classifier on labelled images by the number of dropout passes: how many does it need?

    python demos/ensemble_size_curve.py MODEL [DATA [PASSES]]

MODEL: an included network's name or a .safetensors file with dropout; DATA: the folder of CIFAR or of
SPLIT/CLASS/*.jpg.
"""

print(__doc__.partition("\n\n")[0], flush=True)  # before the imports, which take seconds

import sys

if "--help" in sys.argv:
    print(__doc__.partition("\n\n")[2])
    sys.exit()

from pathlib import Path

import numpy as np
import torch

from steadyseg import (
    InputError,
    Normalize,
    Prediction,
    StreamingMetrics,
    forward_passes,
    open_classification,
    open_model,
    running_mean,
)

BATCH, BAR = 100, 50


def main(model: str = "cifar10-resnet18-mc-smooth", data: str = "cifar10", samples: str = "20") -> None:
    opened = open_model(model)
    network, meta = opened.network(), opened.meta
    normalize, images = Normalize(meta.mean, meta.std), open_classification(Path(data), "test")
    by_passes = [StreamingMetrics(len(meta.classes)) for _ in range(int(samples))]
    torch.manual_seed(0)  # seeds the dropout masks
    for first in range(0, len(images), BATCH):
        places = range(first, min(first + BATCH, len(images)))
        batch = np.stack([images.evaluation_view(images[place][0], meta.height) for place in places])
        labels = torch.from_numpy(images.labels[places.start : places.stop])
        with torch.inference_mode():
            logits = forward_passes(network, normalize(torch.from_numpy(batch).permute(0, 3, 1, 2)), len(by_passes))
            members = (Prediction.from_logits(one) for one in logits)
            for metrics, mean in zip(by_passes, running_mean(members), strict=True):  # the mean of 1, 2, ... passes
                metrics.update(mean.probs, labels)

    curve = [metrics.result() for metrics in by_passes]
    best, worst = (choose(point["nll"] for point in curve) for choose in (min, max))
    print(f"{images.name}, {len(images)} images; the bar is the NLL above its best, {best:.4f}")
    for number, point in enumerate(curve, start=1):
        bar = "#" * round(BAR * (point["nll"] - best) / max(worst - best, 1e-9))
        print(f"{number:3d} passes  NLL {point['nll']:.4f}  accuracy {point['accuracy']:.1%}  {bar}")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except InputError as error:
        sys.exit(f"{error}")
