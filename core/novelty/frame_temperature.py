"""Fits the temperature of a frame to its statistics: log T = level + slopes @ deviations, by the NLL of labelled
pixels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from core.errors import InputError
from core.method import Method, settings
from core.novelty.head import MAX_FITTED_DEVIATION, MAX_LOG_TEMPERATURE, MIN_LOG_TEMPERATURE

CLEAN_SHARE = 0.5
"""Share of the total weight that unchanged frames have together."""
RIDGE = 1e-2
"""Times the sum of the squared slopes, in nats: keeps columns that say the same from growing against each other."""


@dataclass(frozen=True)
class FrameTemperatureFit:
    """A fitted temperature that follows the frame."""

    slopes: tuple[float, ...]
    level: float
    nll_one: float
    """Mean NLL over the frames with the best single temperature."""
    nll: float
    """Mean NLL over the frames with a temperature for each frame."""
    frames: int

    def record(self) -> dict[str, Any]:
        """The entry of a checkpoint's record for mode `dnn`."""
        return {
            **settings(Method("dnn")),
            "slopes": [round(one, 6) for one in self.slopes],
            "level": round(self.level, 6),
            "pictures": self.frames,
            "nll_one_temperature": round(self.nll_one, 6),
            "nll": round(self.nll, 6),
        }


def fit_frame_temperature(
    deviations: Tensor, logits: list[Tensor], labels: list[Tensor], weights: Tensor
) -> FrameTemperatureFit:
    """Fits slopes and level to N frames: deviations (N, S); for each frame, logits (P, K) and labels (P,) of its
    non-void pixels; weights (N,) of the frames. InputError for fewer than two frames, or one without a labelled pixel.
    """
    if len(logits) < 2 or not all(len(one) for one in labels):
        raise InputError("a temperature of the frame needs two or more frames with labelled pixels each")
    x = deviations.double().clamp(-MAX_FITTED_DEVIATION, MAX_FITTED_DEVIATION)
    pixels = _Pixels.of(logits, labels, weights / weights.sum())
    one, found = _minimise(x[:, :0], pixels), _minimise(x, pixels)
    with torch.no_grad():
        nll_one, nll = float(_loss(x[:, :0], one, pixels)), float(_loss(x, found, pixels))
    return FrameTemperatureFit(tuple(found[:-1].tolist()), float(found[-1]), nll_one, nll, len(logits))


def shares(clean: Sequence[bool], clean_share: float = CLEAN_SHARE) -> Tensor:
    """Weights (N,) of frames: the unchanged ones have `clean_share` together, the changed ones the rest."""
    as_it_is = torch.tensor(clean, dtype=torch.float64)
    changed = 1 - as_it_is
    return clean_share * as_it_is / as_it_is.sum() + (1 - clean_share) * changed / changed.sum()


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


def log_temperatures(deviations: Tensor, parameters: Tensor) -> Tensor:
    """Log temperatures (N,) from deviations (N, S) and slopes and level (S + 1,)."""
    return (deviations @ parameters[:-1] + parameters[-1]).clamp(MIN_LOG_TEMPERATURE, MAX_LOG_TEMPERATURE)


def _loss(x: Tensor, parameters: Tensor, pixels: _Pixels) -> Tensor:
    inverse = (-log_temperatures(x, parameters)).exp().float()[pixels.frames]
    losses = F.cross_entropy(pixels.logits * inverse[:, None], pixels.labels, reduction="none")
    return losses @ pixels.weights


def _minimise(x: Tensor, pixels: _Pixels) -> Tensor:
    """Minimises the NLL; returns slopes and level (S + 1,)."""
    parameters = torch.zeros(x.shape[1] + 1, dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([parameters], max_iter=60, line_search_fn="strong_wolfe", tolerance_change=1e-8)

    def closure() -> Tensor:
        search.zero_grad()
        loss = _loss(x, parameters, pixels) + RIDGE * (parameters[:-1] ** 2).sum()
        loss.backward()
        return loss

    search.step(closure)
    return parameters.detach()
