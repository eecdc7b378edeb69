"""Temporal consistency along sequences of pictures that change a little, as `StreamingMetrics` defines
it."""

import torch
from torch import Tensor

from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.studies.robustness.measures.perturbations import Comparison

MEASURES = ("consistency", "cec", "cec_reference")


class TemporalConsistency:
    """Means over sequences; every sequence counts the same, whatever the batches.

    Consistency is the share of pairs of frames with one arg-max (arXiv 2105.12639, Eq. 34; 1 - consistency is CIFAR-P's
    flip probability). CEC is the cross-entropy of a pair: `cec` as in the paper (Eq. 35: summed over classes, the
    earlier frame weighs), `cec_reference` as in the published code (averaged over classes, the roles swapped). The
    published values fit the code. Pairs are neighbours, or the first frame with each later one.
    """

    def __init__(self, num_classes: int, compare: Comparison = "neighbours", void: int | None = None) -> None:
        self.num_classes, self.compare, self.void = num_classes, compare, void
        self._sums = dict.fromkeys(MEASURES, 0.0)
        self.sequences = 0

    def update(self, probs: Tensor, labels: Tensor | None = None) -> None:
        """Adds a batch: probabilities (S, F, K, ...) of S sequences of F frames, K classes, pixels if there are any.

        `labels` (S, ...) of the sequences leave void pixels out; without them all count.
        """
        void = self.void
        if labels is None:  # any class will do
            labels, void = torch.zeros(probs[:, 0, 0].shape, dtype=torch.int64, device=probs.device), None
        # The sequences of a batch are, frame by frame, the pixels of one stream: (1, K, S, ...).
        frames = [frame.movedim(1, 0).unsqueeze(0) for frame in probs.unbind(1)]
        metrics = StreamingMetrics(self.num_classes, void)
        metrics.update(frames[0], labels.unsqueeze(0))
        for place, frame in enumerate(frames[1:]):
            if self.compare == "first" and place:
                metrics.update(frames[0], labels.unsqueeze(0))
            metrics.update(frame, labels.unsqueeze(0), continues=True)
        result = metrics.result()
        for measure in MEASURES:
            self._sums[measure] += len(probs) * result[measure]
        self.sequences += len(probs)

    def result(self) -> dict[str, float]:
        """`consistency` (share), `cec` and `cec_reference` (nats)."""
        return {measure: total / self.sequences for measure, total in self._sums.items()}


def relative_confidence(probs: Tensor, labels: Tensor) -> Tensor:
    """Probability of the true class over the largest one, 1 where the prediction is right (arXiv 2105.12639, Eq. 36).

    probs (N, K, ...), labels (N, ...) class ids -> (N, ...).
    """
    return probs.gather(1, labels.long().unsqueeze(1)).squeeze(1) / probs.amax(1)
