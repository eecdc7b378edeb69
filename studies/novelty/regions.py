"""Foreign objects pasted into test frames: how well each score finds their pixels.

    python -m studies.novelty.regions --data ../shared/data camvid-unet-s ...

Ellipses cut out of photographs, each at a random place of the lower two thirds. Scores at stride 4 of what the network
saw. Standardised max-logit (Jung et al. 2021, arXiv 2107.11264): by predicted class, mean and deviation of training
frames.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from core.classes import CAMVID
from core.novelty.statistics import STRIDE
from core.preprocess import enlarge, nearest
from core.system.pictures import read_upright
from studies.harness.ood_detection import auroc
from studies.novelty.by_network import run
from studies.novelty.novelty_network import NoveltyNetwork
from studies.novelty.samples import Data, Sample, drawing, of_split, spread_over

STILLS, TRAIN_FRAMES = 49, 40
SCORES = ("novelty of regions", "max-softmax", "entropy", "max-logit", "energy", "standardised max-logit")


def pasted(data: Data) -> Iterator[Sample]:
    """The label is 1 on the object, 255 where the picture's own label is void, else 0."""
    import cv2

    photographs = sorted((data.folder / "imagenet-sample/imagenet-1k-24").glob("*.JPEG"))
    places = spread_over(len(data.split("test")), STILLS)
    for number, (name, image, label) in enumerate(of_split(data, "test", places)):
        draw = drawing("paste", name)
        height, width = (int(draw.integers(50, 130)) for _ in range(2))
        top = int(draw.integers(image.shape[0] // 3, image.shape[0] - height))
        left = int(draw.integers(0, image.shape[1] - width))
        photograph = read_upright(photographs[number % len(photographs)])
        small = cv2.resize(photograph, (width, height), interpolation=cv2.INTER_AREA)
        inside = np.zeros((height, width), np.uint8)
        cv2.ellipse(inside, (width // 2, height // 2), (width // 2 - 1, height // 2 - 1), 0, 0, 360, 1, -1)
        mixed, truth = image.copy(), np.where(label == CAMVID.void_id, 255, 0).astype(np.uint8)
        window = slice(top, top + height), slice(left, left + width)
        mixed[window][inside > 0] = small[inside > 0]
        truth[window][inside > 0] = 1
        yield Sample("pasted", name, mixed, truth)


class Standard:
    """Mean and deviation of the largest logit by predicted class."""

    def __init__(self, classes: int) -> None:
        self.sums = torch.zeros(3, classes, dtype=torch.float64)

    def update(self, logits: Tensor) -> None:
        best, label = logits[0].flatten(1).max(0)
        for row, values in enumerate((torch.ones_like(best), best, best**2)):
            self.sums[row].index_add_(0, label, values.double())

    def __call__(self, logits: Tensor) -> Tensor:
        best, label = logits[0].max(0)
        mean, square = self.sums[1:] / self.sums[0].clamp_min(1)
        deviation = (square - mean**2).clamp_min(1e-6).sqrt()
        return (best.double() - mean[label]) / deviation[label]


def scores_of(logits: Tensor, regions: Tensor, standard: Standard) -> dict[str, Tensor]:
    """(h, w) each, higher where it is novel; `regions` is brought to the logits' places."""
    logs = logits[0].log_softmax(0)
    novel = torch.nn.functional.interpolate(regions[None], logits.shape[-2:], mode="nearest")[0, 0]
    found = (
        novel,
        -logs.amax(0),
        -(logs.exp() * logs).sum(0),
        -logits[0].amax(0),
        -torch.logsumexp(logits[0], 0),
        -standard(logits),
    )
    return dict(zip(SCORES, found, strict=True))


def average_precision(scores: Tensor, truth: Tensor) -> float:
    """Area under precision over recall by steps, as scikit-learn's."""
    order = scores.argsort(descending=True)
    hits = truth[order].double()
    precision = hits.cumsum(0) / torch.arange(1, len(hits) + 1)
    return float((precision * hits).sum() / hits.sum())


def fpr_at_95(inside: Tensor, outside: Tensor) -> float:
    """Share of ordinary pixels above the score that 95 % of the object's pixels exceed."""
    return float((inside >= torch.quantile(outside, 0.05)).double().mean())


def measure(model: str, data: Data) -> dict[str, Any]:
    return compare(NoveltyNetwork(model), data, pasted(data))


def compare(network: NoveltyNetwork, data: Data, samples: Iterator[Sample]) -> dict[str, Any]:
    """By score, over the pixels of all pictures together; labels as `pasted` has them."""
    standard = Standard(len(CAMVID))
    for _, image, _ in of_split(data, "train", spread_over(len(data.split("train")), TRAIN_FRAMES)):
        (logits, *_), size = network(image)
        standard.update(enlarge(logits, size)[..., ::STRIDE, ::STRIDE].float())
    columns: dict[str, list[Tensor]] = {}
    truths = []
    for sample in samples:
        (logits, _, _, _, regions, *_), size = network(sample.image)
        thin = enlarge(logits, size)[..., ::STRIDE, ::STRIDE].float()
        assert sample.label is not None
        truth = nearest(torch.from_numpy(sample.label)[None], size)[0][::STRIDE, ::STRIDE].flatten()
        for name, values in scores_of(thin, regions, standard).items():
            columns.setdefault(name, []).append(values.flatten()[truth != 255])
        truths.append(truth[truth != 255] == 1)
    truth = torch.cat(truths)
    rows = {}
    for name, parts in columns.items():
        values = torch.cat(parts).double()
        inside, outside = values[~truth], values[truth]
        rows[name] = {
            "ap": average_precision(values, truth),
            "auroc": auroc(inside, outside),
            "fpr95": fpr_at_95(inside, outside),
        }
    return {"pictures": len(truths), "share": float(truth.double().mean()), "scores": rows}


if __name__ == "__main__":
    run(__doc__, "regions", measure)
