"""Baselines of the bench: the deque that a competent user writes, and the published evaluation's way."""

from collections import deque
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from steadyseg.core.preprocess import enlarge

Logits = Callable[[np.ndarray], Tensor]
"""(1, h, w, 3) uint8 -> (K, h / s, w / s) logits, valid until the next call."""
WINDOW = 5
"""Previous frames in the mean, as published for CamVid."""
TAU = 1.25
"""Decay in frames, as published."""


class NaiveDeque:
    """One pass a frame, the last six softmax maps in a deque, averaged, then label, confidence and entropy; no fused
    kernel."""

    def __init__(self, logits: Logits, size: tuple[int, int]) -> None:
        self._logits, self._size = logits, size
        self._recent: deque[Tensor] = deque(maxlen=WINDOW + 1)

    def __call__(self, picture: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        """(1, h, w, 3) uint8 -> label, confidence and entropy (h, w)."""
        with torch.inference_mode():
            probs = F.softmax(enlarge(self._logits(picture).float()[None], self._size)[0], dim=0)
            self._recent.extendleft([probs] * (1 if self._recent else WINDOW + 1))
            mean = torch.tensordot(_weights(probs), torch.stack(tuple(self._recent)), dims=1)
            confidence, label = mean.max(dim=0)
            entropy = -(mean * mean.clamp_min(1e-12).log()).sum(dim=0)
            return label.cpu(), confidence.cpu(), entropy.cpu()

    @property
    def state_bytes(self) -> int:
        """Bytes that are kept from frame to frame; the first frame fills all six places."""
        return sum(probs.nbytes for probs in self._recent)


class Published:
    """The network runs on the last six frames again for every frame, dropout drawn each time; softmax and weighted
    mean.

    It makes no maps and no batch: six passes in a row, since one pass already uses all cores.
    """

    def __init__(self, logits: Logits) -> None:
        self._logits = logits
        self._recent: deque[np.ndarray] = deque(maxlen=WINDOW + 1)

    def __call__(self, picture: np.ndarray) -> Tensor:
        """(1, h, w, 3) uint8 -> (K, h / s, w / s) mean probabilities."""
        self._recent.extendleft([picture] * (1 if self._recent else WINDOW + 1))
        with torch.inference_mode():
            probs = [F.softmax(self._logits(one).float(), dim=0) for one in self._recent]
            return torch.tensordot(_weights(probs[0]), torch.stack(probs), dims=1).cpu()


def _weights(like: Tensor) -> Tensor:
    """(6,) newest first, sum 1."""
    weights = torch.exp(-torch.arange(WINDOW + 1, device=like.device) / TAU)
    return weights / weights.sum()
