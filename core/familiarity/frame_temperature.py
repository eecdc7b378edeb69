"""The temperature of a novel frame: the fitted temperature times exp(warmth).

A frame that is not novel has exactly the fitted temperature, so that the calibration on the training domain stays. The
warmth of other frames grows with their excess up to a linear function of their statistics. It is never negative: a
novel frame is never trusted more. The function is fitted by the NLL of labelled pixels of changed frames.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from steadyseg.core.errors import InputError

CLEAN_SHARE = 0.5
"""Share of the total weight that unchanged frames have together."""
RIDGE = 1e-2
"""Factor on the sum of the squared slopes, in nats. It keeps slopes of redundant columns from growing against each
other."""
START = 0.5
"""Warmth at which the search starts: below 0 it would have no gradient."""
MAX_WARMTH = 2.5
"""Log of 12: beyond, a softmax is as good as uniform."""
MAX_FITTED_DEVIATION = 10.0
"""Standardised statistics are clipped here, because a line must not extrapolate beyond the fitted frames."""


def warmth(deviations: Tensor, excess: Tensor, slopes: Tensor, level: float | Tensor) -> Tensor:
    """Log of the factor on the fitted temperature, (B,), 0 or more.

    Args:
        deviations: (B, S) statistics in standard deviations from their mean over the training domain.
        excess: (B,) 0 or less where a frame is not novel, 1 or more where it is fully novel.
        slopes: (S,).
        level: Warmth of a novel frame with mean statistics; usually negative.
    """
    full = deviations.clamp(-MAX_FITTED_DEVIATION, MAX_FITTED_DEVIATION) @ slopes + level
    return full.clamp(0.0, MAX_WARMTH) * excess.clamp(0.0, 1.0)


@dataclass(frozen=True)
class WarmthFit:
    """A fitted warmth."""

    slopes: tuple[float, ...]
    level: float
    nll_one: float
    """Mean NLL over the frames with one temperature."""
    nll: float
    """Mean NLL over the frames with their warmth."""
    frames: int

    def record(self) -> dict[str, Any]:
        """The entry of a checkpoint's record."""
        return {
            "slopes": [round(one, 6) for one in self.slopes],
            "level": round(self.level, 6),
            "pictures": self.frames,
            "nll_one_temperature": round(self.nll_one, 6),
            "nll": round(self.nll, 6),
        }


def fit_warmth(
    deviations: Tensor,
    excess: Tensor,
    logits: list[Tensor],
    labels: list[Tensor],
    is_clean: Sequence[bool],
    fitted: float = 0.0,
) -> WarmthFit:
    """Fits slopes and level to N frames: deviations (N, S) and excess (N,) as in `warmth`. Each frame has logits (P,
    K) and labels (P,) of its non-void pixels; `is_clean` marks the unchanged frames.

    Warmth counts from `fitted`, the network's temperature, or from the unchanged frames' own temperature if it is
    higher. The network is more often right near its trained frames, and unchanged frames may be among these.
    InputError for fewer than two frames, no unchanged frame, or a frame without a labelled pixel.
    """
    if len(logits) < 2 or not any(is_clean) or not all(len(one) for one in labels):
        raise InputError("warmth is fitted to two or more frames with labelled pixels each, one of them unchanged")
    clean, columns = torch.tensor(is_clean), (deviations.double(), excess.double())
    at_home = _Pixels.of(logits, labels, clean / clean.sum())
    usual = _minimise(lambda found: at_home.nll(found.expand(len(logits))), torch.zeros(1, dtype=torch.float64))
    usual = usual.clamp_min(math.log(fitted)) if fitted else usual
    pixels = _Pixels.of(logits, labels, shares(clean))

    def nll(found: Tensor) -> Tensor:
        return pixels.nll(usual + warmth(*columns, found[:-1], found[-1]))

    start = torch.zeros(deviations.shape[1] + 1, dtype=torch.float64)
    start[-1] = START
    found = _minimise(lambda found: nll(found) + RIDGE * (found[:-1] ** 2).sum(), start)
    one = float(pixels.nll(usual.expand(len(logits))))
    return WarmthFit(tuple(found[:-1].tolist()), float(found[-1]), one, float(nll(found)), len(logits))


def shares(clean: Tensor) -> Tensor:
    """Weights (N,) of frames: the unchanged frames have `CLEAN_SHARE` together, the changed frames the rest."""
    as_it_is = clean.double()
    changed = 1 - as_it_is
    return CLEAN_SHARE * as_it_is / as_it_is.sum() + (1 - CLEAN_SHARE) * changed / changed.sum().clamp_min(1.0)


class _Pixels(NamedTuple):
    """Pixels of all frames together."""

    logits: Tensor
    """(M, K)"""
    labels: Tensor
    """(M,)"""
    frames: Tensor
    """(M,) index of each pixel's frame."""
    weights: Tensor
    """(M,) with sum 1."""

    @classmethod
    def of(cls, logits: list[Tensor], labels: list[Tensor], weights: Tensor) -> "_Pixels":
        counts = torch.tensor([len(one) for one in labels])
        frames = torch.repeat_interleave(torch.arange(len(labels)), counts)
        return cls(
            torch.cat(logits).float(), torch.cat(labels).long(), frames, (weights.double() / counts)[frames].float()
        )

    def nll(self, logs: Tensor) -> Tensor:
        """Weighted NLL at the log temperatures (N,) of the frames."""
        scaled = self.logits * (-logs).exp().float()[self.frames][:, None]
        return F.cross_entropy(scaled, self.labels, reduction="none") @ self.weights


def _minimise(loss: Callable[[Tensor], Tensor], start: Tensor) -> Tensor:
    """Returns the parameters of the lowest loss, by LBFGS from `start`."""
    parameters = start.clone().requires_grad_()
    search = torch.optim.LBFGS([parameters], max_iter=60, line_search_fn="strong_wolfe", tolerance_change=1e-8)

    def closure() -> Tensor:
        search.zero_grad()
        found = loss(parameters)
        found.backward()
        return found

    search.step(closure)
    return parameters.detach()
