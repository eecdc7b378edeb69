"""Fits a classifier's temperature and the thresholds of its prediction sets, with as many passes as are used later."""

from collections.abc import Iterable

from steadyseg.classification.evaluate import Batch, Classifier
from steadyseg.core.evaluation.conformal import ConformalScores
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.evaluation.temperature import WIDE_GRID, TemperatureFit, TemperatureScan, grid_tensor


def fit_temperature(
    classifier: Classifier, batches: Iterable[Batch], mode: str, samples: int, num_classes: int
) -> TemperatureFit:
    """Fits the temperature in one pass over the pictures; in mode bnn to the mean of `samples` tempered softmaxes."""
    scan = TemperatureScan(num_classes, None, WIDE_GRID)
    grid = grid_tensor(classifier.device, WIDE_GRID).squeeze(-1)  # (T, 1, 1)
    for batch in batches:
        *_, mean = classifier.by_size(batch, mode, samples, grid)
        scan.update(mean.probs, batch[2].to(mean.probs.device))
    return scan.fit()


def fit_sets(
    classifier: Classifier,
    batches: Iterable[Batch],
    mode: str,
    samples: int,
    temperature: float,
    num_classes: int,
) -> tuple[ConformalScores, StreamingMetrics]:
    """Returns the scores of all pictures, whose quantiles are the thresholds, and the metrics of the pictures, at this
    temperature."""
    scores, metrics = ConformalScores(None), StreamingMetrics(num_classes)
    for batch in batches:
        *_, mean = classifier.by_size(batch, mode, samples, temperature)
        probs = mean.probs.float().cpu()
        scores.update(probs.T, batch[2])
        metrics.update(probs, batch[2])
    return scores, metrics
