"""Fits the temperature of a frame to its statistics: log T = level + slopes @ deviations, by the NLL of labelled pixels."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from core.errors import InputError
from core.novelty.head import LEAST_LOG_TEMPERATURE, MOST_FITTED_DEVIATION, MOST_LOG_TEMPERATURE

RIDGE = 1e-3
"""Times the sum of the squared slopes, in nats: keeps columns that say the same from growing against each other."""


@dataclass(frozen=True)
class FrameTemperatureFit:
    """What was found."""

    slopes: tuple[float, ...]
    level: float
    nll_one: float
    """Mean NLL over the frames with the best single temperature."""
    nll: float
    """With one for each frame."""


def fit_frame_temperature(
    deviations: Tensor, logits: list[Tensor], labels: list[Tensor], weights: Tensor
) -> FrameTemperatureFit:
    """deviations (N, S); of each frame logits (P, K) and labels (P,), void left out; weights (N,) of the frames.

    InputError for fewer than two frames, or one without a labelled pixel.
    """
    if len(logits) < 2 or not all(len(one) for one in labels):
        raise InputError("a temperature of the frame needs two or more frames with labelled pixels each")
    x = deviations.double().clamp(-MOST_FITTED_DEVIATION, MOST_FITTED_DEVIATION)
    weights = (weights / weights.sum()).double()
    one = _minimise(x[:, :0], logits, labels, weights)
    found = _minimise(x, logits, labels, weights)
    slopes, level = found[:-1], float(found[-1])
    return FrameTemperatureFit(
        tuple(slopes.tolist()),
        level,
        _nll(x[:, :0], one, logits, labels, weights),
        _nll(x, found, logits, labels, weights),
    )


def log_temperatures(deviations: Tensor, parameters: Tensor) -> Tensor:
    """(N, S), (S + 1,) slopes and level -> (N,)."""
    return (deviations @ parameters[:-1] + parameters[-1]).clamp(LEAST_LOG_TEMPERATURE, MOST_LOG_TEMPERATURE)


def _nll(x: Tensor, parameters: Tensor, logits: list[Tensor], labels: list[Tensor], weights: Tensor) -> float:
    with torch.no_grad():
        return float(_loss(log_temperatures(x, parameters), logits, labels, weights))


def _loss(logs: Tensor, logits: list[Tensor], labels: list[Tensor], weights: Tensor) -> Tensor:
    losses = [
        F.cross_entropy(one.float() / log.float().exp(), label)
        for log, one, label in zip(logs, logits, labels, strict=True)
    ]
    return (torch.stack(losses).double() * weights).sum()


def _minimise(x: Tensor, logits: list[Tensor], labels: list[Tensor], weights: Tensor) -> Tensor:
    parameters = torch.zeros(x.shape[1] + 1, dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([parameters], max_iter=100, line_search_fn="strong_wolfe", tolerance_change=1e-9)

    def closure() -> Tensor:
        search.zero_grad()
        loss = _loss(log_temperatures(x, parameters), logits, labels, weights) + RIDGE * (parameters[:-1] ** 2).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    search.step(closure)  # type: ignore[arg-type]
    return parameters.detach()
