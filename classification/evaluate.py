"""Predictions and metrics of a classifier by ensemble size, in one pass over pictures, and its temperature."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from steadyseg.classification.data.labelled import ClassificationSet
from steadyseg.core.dropout import is_stochastic, set_dropout_active
from steadyseg.core.errors import InputError
from steadyseg.core.evaluation.metrics import SMALLEST_PROBABILITY, StreamingMetrics
from steadyseg.core.evaluation.temperature import WIDE_GRID, TemperatureFit, TemperatureScan, grid_tensor
from steadyseg.core.familiarity.head import FamiliarityHead, WatchedPredictor
from steadyseg.core.prediction import Prediction, mean_prediction
from steadyseg.core.predictors import forward_passes, running_mean
from steadyseg.core.preprocess import Normalize
from steadyseg.core.seeds import mix_seed

DEFAULT_SAMPLES = 50
"""Dropout passes, as published (arXiv 2105.12639, Fig. 1 and Table E.1)."""
FULL_SIZES = (1, 2, 3, 4, 5, 10, 20, 50)
"""Ensemble sizes with all metrics; NLL and accuracy come at every size."""
TOP = 5
PIXELS = 2**20
"""Pixels of all pictures of one network call: 256 pictures of 32 x 32, 20 of 224 x 224."""
MAX_AT_ONCE = 256
FIGURES = (
    "nll accuracy ece ece_15 ece_signed ece_reference brier acc_90 unc_90 freq_90 aurc error_recall_10 "
    "error_recall_10_ceiling"
).split()
"""Metrics of core that apply to whole images; consistency and IoU are for pixels."""

Batch = tuple[int, Tensor, Tensor]
"""(place of the first picture, (B, s, s, 3) uint8 RGB, (B,) class ids)."""


def batches(data: ClassificationSet, size: int) -> Iterator[Batch]:
    """All pictures as inputs of a network of this size, in batches whose length depends on the size alone."""
    count = batch_size(size)
    for first in range(0, len(data), count):
        places = range(first, min(first + count, len(data)))
        views = np.stack([data.evaluation_view(data[place][0], size) for place in places])
        yield first, torch.from_numpy(views), torch.from_numpy(data.labels[places.start : places.stop])


def batch_size(size: int) -> int:
    """Number of pictures of size x size in a batch."""
    return max(1, min(MAX_AT_ONCE, PIXELS // size**2))


class Classifier:
    """One network, or several as a deep ensemble, on its device: pictures in, predictions by ensemble size out.

    The masks of a batch depend only on the seed and the place of its first picture. A smaller ensemble uses the first
    passes of a larger ensemble. So results repeat on one device for every N.
    """

    def __init__(
        self,
        networks: Sequence[nn.Module],
        mean: tuple[float, float, float],
        std: tuple[float, float, float],
        device: torch.device,
        seed: int = 0,
        head: FamiliarityHead | None = None,
    ) -> None:
        """head: the familiarity head, for one pass without dropout of a single network."""
        self.networks = [n.to(device).to(memory_format=torch.channels_last).eval() for n in networks]
        self.normalize = Normalize(mean, std).to(device)
        self.device, self.seed = device, seed
        self.watched = WatchedPredictor(self.networks[0], head.to(device)) if head else None
        self._switch(True)
        self.has_dropout = any(map(is_stochastic, self.networks))

    @torch.inference_mode()
    def by_size(self, batch: Batch, mode: str, samples: int, temperature: float | Tensor = 1.0) -> Iterator[Prediction]:
        """Yields after 1, 2, ... networks with dropout off (dnn), or 1, 2, ... `samples` passes by all networks (bnn).

        A tensor (T, 1, 1) of temperatures gives (T, K, B) predictions, one for each temperature.
        """
        first, pictures, _ = batch
        x = self.normalize(pictures.to(self.device).permute(0, 3, 1, 2))
        self._switch(mode == "bnn")
        if mode == "dnn" and self.watched is not None and not isinstance(temperature, Tensor):
            self.watched.temperature = temperature
            yield self.watched(x)
            return
        if mode == "bnn":
            torch.manual_seed(mix_seed(self.seed, first))
            rounds = zip(*(forward_passes(network, x, samples) for network in self.networks), strict=True)
            members = (mean_prediction([member(one, temperature) for one in logits]) for logits in rounds)
        else:
            members = (member(network(x), temperature) for network in self.networks)
        yield from running_mean(members)

    def _switch(self, active: bool) -> None:
        for network in self.networks:
            set_dropout_active(network, active)


def member(logits: Tensor, temperature: float | Tensor) -> Prediction:
    """(B, K) logits -> (B, K), or (T, K, B) where the temperature is a tensor (T, 1, 1)."""
    return Prediction.from_logits(logits.T[None] if isinstance(temperature, Tensor) else logits, temperature)


class SizeMetrics:
    """Metrics by ensemble size: NLL and accuracy of each, all of them for `FULL_SIZES`, the first and the last."""

    def __init__(self, num_classes: int, sizes: Sequence[int]) -> None:
        """`sizes`: numbers of members of a batch's successive predictions; 0: dropout off."""
        self.sizes = tuple(sizes)
        full = {*FULL_SIZES, self.sizes[0], self.sizes[-1]}
        self.full = {size: ImageMetrics(num_classes) for size in self.sizes if size in full}
        self._sums = torch.zeros(2, len(self.sizes), dtype=torch.float64)  # NLL, correct predictions
        self._images = 0

    def update(self, predictions: Iterable[Prediction], labels: Tensor) -> Prediction:
        """Adds the predictions of one batch by ensemble size, with labels (B,); returns the last prediction."""
        for place, (size, prediction) in enumerate(zip(self.sizes, predictions, strict=True)):
            probs = prediction.probs.float().cpu()
            p_true = probs.gather(1, labels[:, None])[:, 0]
            self._sums[0, place] -= p_true.clamp_min(SMALLEST_PROBABILITY).log().sum(dtype=torch.float64)
            self._sums[1, place] += (probs.argmax(1) == labels).sum()
            if size in self.full:
                self.full[size].update(prediction, labels)
        self._images += len(labels)
        return prediction

    def curve(self) -> list[dict[str, float]]:
        """{"n", "nll", "accuracy"} of every ensemble size."""
        nll, right = (self._sums / self._images).tolist()
        return [{"n": n, "nll": a, "accuracy": b} for n, a, b in zip(self.sizes, nll, right, strict=True)]

    def rows(self) -> list[dict[str, Any]]:
        """All metrics of each size in `FULL_SIZES`, and of the first and the last size, with the size as `n`."""
        return [{"n": size, **metrics.figures()} for size, metrics in self.full.items()]


class ImageMetrics:
    """Metrics of whole images: the metrics of core, top-5 accuracy, accuracy by class and mean uncertainty."""

    def __init__(self, num_classes: int) -> None:
        self.metrics = StreamingMetrics(num_classes)
        self._top = 0 if num_classes > TOP else None
        self._by_class = torch.zeros(2, num_classes, dtype=torch.int64)  # correct predictions, all
        self._uncertainty = torch.zeros(2, dtype=torch.float64)  # total and disagreement, nats

    def update(self, prediction: Prediction, labels: Tensor) -> None:
        """Adds a prediction (B, K) and labels (B,)."""
        probs = prediction.probs.float().cpu()
        self.metrics.update(probs, labels)
        if self._top is not None:
            self._top += int((probs.topk(TOP, dim=1).indices == labels[:, None]).any(1).sum())
        classes = self._by_class.shape[1]
        for row, found in enumerate((labels[probs.argmax(1) == labels], labels)):
            self._by_class[row] += torch.bincount(found, minlength=classes)
        for place, values in enumerate((prediction.entropy, prediction.disagreement)):
            self._uncertainty[place] += values.double().sum().cpu()

    def figures(self) -> dict[str, Any]:
        """Metrics of one number each: fractions in 0..1, NLL, entropy and disagreement in nats; None where undefined.

        `top_5_accuracy` is None for 5 classes or fewer; StreamingMetrics explains the other metrics.
        """
        everything, images = self.metrics.result(), self.metrics.valid_samples
        figures = {key: everything[key] for key in FIGURES}
        figures["top_5_accuracy"] = None if self._top is None else self._top / images
        total, disagreement = (self._uncertainty / images).tolist()
        return figures | {"entropy": total, "disagreement": disagreement}

    def details(self) -> dict[str, Any]:
        """Metrics with a value for each bin or class."""
        everything = self.metrics.result()
        right, count = self._by_class.tolist()
        return {
            "class_accuracy": [r / n if n else None for r, n in zip(right, count, strict=True)],
            "class_images": count,
            "reliability": everything["reliability"],
            "risk_coverage": everything["risk_coverage"],
        }


def default_samples(asked: int | None, mode: str | None, has_dropout: bool) -> int:
    """Number of dropout passes; 0: dropout is off or absent. InputError if mode and number contradict each other."""
    if mode not in (None, "dnn", "bnn"):
        raise InputError(f"mode {mode} averages over frames and a classifier sees single pictures; use mode dnn or bnn")
    if asked is not None and asked < 1:
        raise InputError(f"the number of dropout samples must be 1 or more, got {asked}")
    if not has_dropout and (mode == "bnn" or (asked or 1) > 1):
        what = "mode bnn" if mode == "bnn" else f"{asked} samples"
        raise InputError(
            f"{what} was asked for, but the network has no dropout; use mode dnn, or members for a deep ensemble"
        )
    if mode == "dnn" and (asked or 1) > 1:
        raise InputError(f"mode dnn makes one pass without dropout, got {asked} samples; use mode bnn")
    return (asked or DEFAULT_SAMPLES) if has_dropout and mode != "dnn" else 0


def predict(
    classifier: Classifier, batches: Iterable[Batch], mode: str, samples: int, temperature: float | Tensor
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields the probabilities (B, K) of each batch, or (T, K, B) for a tensor of temperatures, and its labels."""
    for batch in batches:
        *_, mean = classifier.by_size(batch, mode, samples, temperature)
        yield mean.probs.float(), batch[2]


def fit_temperature(
    classifier: Classifier, batches: Iterable[Batch], mode: str, samples: int, num_classes: int
) -> TemperatureFit:
    """Fits the temperature in one pass over the pictures; in mode bnn to the mean of `samples` tempered softmaxes."""
    scan = TemperatureScan(num_classes, None, WIDE_GRID)
    grid = grid_tensor(classifier.device, WIDE_GRID).squeeze(-1)  # (T, 1, 1)
    for probs, labels in predict(classifier, batches, mode, samples, grid):
        scan.update(probs, labels.to(probs.device))
    return scan.fit()
