"""Coarse labels in metrics and fits: a pixel's label is a set of classes, of which any is right.

Sets are int32: bit c is set where class c is allowed, and 0 is void. Labels of any other integer type are class ids.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Settled(NamedTuple):
    """Labels as class ids, for predictions that were made."""

    ids: Tensor
    """(B, ...) int64 ids. Of a set the likeliest class: it is the predicted class where that is in the set."""
    allowed: Tensor | None
    """(B, K, ...) bool: the classes of each sample's set; None for labels of ids."""
    kinds: Tensor
    """(B, ...) int64: equal numbers are equal labels, and void is void."""


def is_coarse(labels: Tensor) -> bool:
    """True if labels are sets of classes."""
    return labels.dtype == torch.int32


def members(sets: Tensor, classes: int) -> Tensor:
    """(B, ...) int32 sets -> (B, K, ...) bool: which classes each sample allows."""
    bits = torch.arange(classes, device=sets.device, dtype=sets.dtype).view(1, -1, *[1] * (sets.ndim - 1))
    return (sets.unsqueeze(1) >> bits & 1).bool()


def settle(probs: Tensor, labels: Tensor, void: int | None) -> Settled:
    """Settles labels (B, ...) for the probabilities (B, K, ...)."""
    labels = labels.to(probs.device)
    if not is_coarse(labels):
        return Settled(labels.long(), None, labels.long())
    allowed, without = members(labels, probs.shape[1]), -1 if void is None else void
    ids = probs.masked_fill(~allowed, -1.0).max(1).indices
    is_void, kinds = labels == 0, labels.long() + 256
    return Settled(ids.masked_fill(is_void, without), allowed, kinds.masked_fill(is_void, without))


def of_label(settled: Settled, probs: Tensor, void: int | None) -> Tensor:
    """Returns (B, ...): the probability of each sample's label, summed over its set; of any class for void.

    `probs` is of the settled batch, or (T, K, ...) where the settled batch has one sample.
    """
    if settled.allowed is not None:
        return (probs * settled.allowed).sum(1)
    ids = known_ids(settled.ids, void).expand(len(probs), *settled.ids.shape[1:])
    return probs.gather(1, ids.unsqueeze(1)).squeeze(1)


def known_ids(ids: Tensor, void: int | None) -> Tensor:
    """Returns ids with void as class 0: any class will do where void is left out afterwards."""
    return ids if void is None else ids.masked_fill(ids == void, 0)
