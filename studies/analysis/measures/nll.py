"""The plain loss that the studies look at: the mean NLL of labels, pictures' or pixels', without weights or
smoothing."""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from steadyseg.core.preprocess import nearest


@dataclass(frozen=True)
class Score:
    """NLL and accuracy of a batch."""

    nll: Tensor
    """Sum over samples (pictures, or pixels that are not void), in nats; with its graph."""
    correct: int
    samples: int


def score(logits: Tensor, labels: Tensor, void: int | None) -> Score:
    """logits (B, K) and labels (B,), or (B, K, h, w) and (B, H, W), which are brought to the logits' size by nearest
    neighbour."""
    if logits.ndim == 4 and labels.shape[-2:] != logits.shape[-2:]:
        labels = nearest(labels, (logits.shape[-2], logits.shape[-1]))
    ignored = -100 if void is None else void
    total = F.cross_entropy(logits, labels, ignore_index=ignored, reduction="sum")
    kept = labels != ignored
    correct = (logits.detach().argmax(1) == labels) & kept
    return Score(total, int(correct.sum()), int(kept.sum()))
