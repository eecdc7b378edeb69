"""The loss of a segmentation training: class-weighted cross-entropy of all heads."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from steadyseg.core.classes import ClassList
from steadyseg.core.evaluation.coarse import members
from steadyseg.core.preprocess import enlarge
from steadyseg.core.training.parts import Outputs
from steadyseg.seg.data.within import LEAST_SHARE
from steadyseg.seg.options import SegTrainConfig

TINY = 1e-30
"""Smallest sum of exponentials; a set that the network rules out entirely costs 69 nats."""


@dataclass(frozen=True)
class SegmentationLoss:
    """Callable (outputs, targets) -> (sum of the weighted losses, sum of the pixels' weights).

    Targets are class ids (B, h, w). The losses of auxiliary heads are added with their weight.
    """

    config: SegTrainConfig
    classes: ClassList
    weights: Tensor
    """(K,) weight of each class."""
    coarse: bool = False
    """Targets are packed labels (`pack_label`)."""

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
        """Returns the class-weighted cross-entropy over non-void pixels and the sum of the weights."""
        if self.coarse:
            return coarse_loss(logits, targets, self.weights, self.config.within)
        weights = self.weights.to(logits.dtype)
        total = F.cross_entropy(logits, targets, weights, ignore_index=self.classes.void_id, reduction="sum")
        return total, (torch.bincount(targets.flatten(), minlength=256)[: len(self.classes)] * weights).sum()


def coarse_loss(logits: Tensor, packed: Tensor, weights: Tensor, within: float) -> tuple[Tensor, Tensor]:
    """Returns the loss of coarse labels, summed, and the sum of the weights.

    A pixel costs -log of the probability of its set, times the mean weight of the set's classes. Where a teacher chose
    a class c of the set with a share r, `within` times the cross-entropy -r log q - (1 - r) log(1 - q) is added, and q
    is the network's probability of c inside the set.

    Args:
        logits: (B, K, h, w).
        packed: (B, h, w) int64 of `pack_label`.
        weights: (K,) of the classes.
    """
    total, weight = CoarseLoss.apply(logits.contiguous(), packed, weights, within)
    return total, weight


class CoarseLoss(torch.autograd.Function):
    """`coarse_loss` with its gradient in closed form: 12 crops of 160x224 take a fifth of autograd's time."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, packed: Tensor, weights: Tensor, within: float) -> tuple[Tensor, Tensor]:
        """Computes the loss, and the gradient beside it."""
        grown = (logits - logits.amax(1, keepdim=True)).exp_()
        allowed = members(packed.to(torch.int32), logits.shape[1]).to(logits.dtype)
        weight = torch.einsum("bkhw,k->bhw", allowed, weights) / allowed.sum(1).clamp_min_(1)
        share = (packed >> 40 & 255).to(logits.dtype) / 255
        taught = within * (share > LEAST_SHARE)
        chosen = torch.where(taught > 0, packed >> 32 & 255, allowed.argmax(1))[:, None]
        known = allowed.gather(1, chosen)[:, 0]  # 0 in void
        one = grown.gather(1, chosen)[:, 0].mul_(known).clamp_min_(TINY)
        others = allowed.scatter_(1, chosen, 0.0).mul_(grown)
        rest = others.sum(1).clamp_min_(TINY)
        inside, total = one + rest, grown.sum(1)
        q = one / inside
        loss = total.log() - inside.log() - taught * (share * q.log() + (1 - share) * (rest / inside).log())
        slope = grown.mul_((weight / total)[:, None])
        slope += others.mul_((weight * (taught * (share - q) / rest - 1 / inside))[:, None])
        slope.scatter_add_(1, chosen, (weight * known * (taught * (q - share) - q))[:, None])
        ctx.save_for_backward(slope)
        total_weight = weight.sum()
        ctx.mark_non_differentiable(total_weight)
        return (loss * weight).sum(), total_weight

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Returns the gradient of the logits."""
        return ctx.saved_tensors[0] * gradients[0], None, None, None


def subsample(targets: Tensor, size: torch.Size) -> Tensor:
    """Subsamples targets (..., H, W) of any type to (..., h, w) by nearest neighbour, as `nearest-exact` does."""
    rows, columns = (
        ((torch.arange(few, device=targets.device) + 0.5) * many / few).long()
        for few, many in zip(size, targets.shape[-2:], strict=True)
    )
    return targets[..., rows[:, None], columns]
