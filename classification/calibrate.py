"""Predictions of a classifier with as many passes as are used later, and its temperature."""

from collections.abc import Iterable, Iterator

from torch import Tensor

from steadyseg.classification.evaluate import Batch, Classifier
from steadyseg.core.evaluation.temperature import WIDE_GRID, TemperatureFit, TemperatureScan, grid_tensor


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
