"""Scores of regions: how strange each place of a picture is, from the logits and the features of the last stage."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from steadyseg.core.classes import CAMVID
from steadyseg.core.model.model import Model
from steadyseg.core.novelty.gaussians import GaussianSums
from steadyseg.core.novelty.statistics import STRIDE, ClassDistance
from steadyseg.core.preprocess import nearest
from steadyseg.studies.novelty.observer import Labelled, Observer


def logit_scores(logits: Tensor) -> dict[str, Tensor]:
    """(1, K, h, w) -> (h, w) each, higher where it is strange."""
    logs = logits[0].log_softmax(0)
    return {
        "max-softmax": -logs.amax(0),
        "entropy": -(logs.exp() * logs).sum(0),
        "max-logit": -logits[0].amax(0),
        "energy": -torch.logsumexp(logits[0], 0),
    }


class Standard:
    """Mean and deviation of the largest logit by predicted class (Jung et al. 2021, arXiv 2107.11264)."""

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
        return -(best.double() - mean[label]) / deviation[label]


@dataclass(frozen=True, eq=False)
class Seen:
    """A network's logits and features of one picture, at every `STRIDE`-th row and column of its input."""

    logits: Tensor
    """(1, K, h, w)"""
    features: Tensor
    """(1, C, h, w) of the last stage."""
    observed: Tensor
    """(h, w) logits of an error, of the head that observes the network."""
    size: tuple[int, int]
    """Height and width of the network's input."""


class RegionScores:
    """The scores of one network; `fit` gives it the training domain's."""

    def __init__(self, model: Model) -> None:
        self.observer, self.standard = Observer(model), Standard(len(CAMVID))

    def look(self, image: np.ndarray) -> Seen:
        found = self.observer(image)
        logits, features, observed = (one[..., ::STRIDE, ::STRIDE] for one in found)
        return Seen(logits, features, observed[0, 0], (found[0].shape[2], found[0].shape[3]))

    def truth(self, label: np.ndarray, seen: Seen) -> Tensor:
        return nearest(torch.from_numpy(label)[None], seen.size)[0][::STRIDE, ::STRIDE]

    @torch.inference_mode()
    def fit(self, pictures: list[Labelled]) -> None:
        """Fits the class means of features, the largest logit of each class, and mean and deviation of two scores, on
        labelled pictures of the training domain; the observer is trained before."""
        shown = [self.look(image) for image, _ in pictures]
        sums = GaussianSums(shown[0].features.shape[1], len(CAMVID))
        for seen, (_, label) in zip(shown, pictures, strict=True):
            self.standard.update(seen.logits)
            sums.update(seen.features[0].flatten(1).T, self.truth(label, seen).flatten())
        self.distance = ClassDistance.of(sums.fit())
        rows = [self.parts(seen) for seen in shown]
        flat = torch.stack([torch.cat([one.flatten() for one in column]) for column in zip(*rows, strict=True)])
        self.mean, self.deviation = flat.mean(1), flat.std(1)

    def parts(self, seen: Seen) -> tuple[Tensor, Tensor]:
        return -torch.logsumexp(seen.logits[0], 0), self.distance.at(seen.features)[0]

    @torch.inference_mode()
    def __call__(self, seen: Seen) -> dict[str, Tensor]:
        """(h, w) each, higher where it is strange."""
        energy, distance = (
            (part - mean) / deviation
            for part, mean, deviation in zip(self.parts(seen), self.mean, self.deviation, strict=True)
        )
        return {
            **logit_scores(seen.logits),
            "standardised max-logit": self.standard(seen.logits),
            "distance": distance,
            "energy and distance": energy + distance,
            "observer": seen.observed,
        }
