"""The training-phase ensemble: the loss sees the mean probabilities of several dropout passes of a batch."""

import math

import torch
from torch import Tensor, nn


class MeanOfPasses(nn.Module):
    """log of the mean softmax of N passes of one batch (B, K, ...), in single precision or more (arXiv 2105.12639).

    Its cross-entropy is the NLL of the mean probabilities, as it is normalised already; a loss that enlarges it first
    interpolates logarithms. BatchNorm's running statistics move N times a batch.
    """

    def __init__(self, network: nn.Module, samples: int) -> None:
        super().__init__()
        self.network, self.samples = network, samples

    def forward(self, x: Tensor) -> Tensor:
        passes = [self._log_probs(x) for _ in range(self.samples)]
        return torch.logsumexp(torch.stack(passes), 0) - math.log(self.samples)

    def _log_probs(self, x: Tensor) -> Tensor:
        logits = self.network(x)
        return torch.log_softmax(logits, 1, dtype=torch.promote_types(logits.dtype, torch.float32))
