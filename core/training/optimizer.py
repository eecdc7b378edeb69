"""The optimiser, its learning rate at every step, and the moving average of the weights."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from steadyseg.core.training.config import TrainConfig

Tensors = tuple[Tensor, ...] | list[Tensor]


def make_optimizer(network: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """Returns the configured optimiser; biases and normalisation parameters take no weight decay."""
    decayed = [p for p in network.parameters() if p.requires_grad and p.ndim > 1]
    plain = [p for p in network.parameters() if p.requires_grad and p.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": config.weight_decay}, {"params": plain, "weight_decay": 0.0}]
    if config.optimizer in ("sgd", "nesterov"):
        return torch.optim.SGD(groups, lr=config.learning_rate, momentum=0.9, nesterov=config.optimizer == "nesterov")
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    return kind(groups, lr=config.learning_rate)


def learning_rate(config: TrainConfig, step: int, steps_per_epoch: int, total_steps: int) -> float:
    """Returns the rate of a step (from 0). It depends on the step's number alone, so a resumed run needs no schedule
    state."""
    if config.schedule == "constant":
        return config.learning_rate
    rise = round(config.warmup * total_steps)
    if config.schedule == "one-cycle":
        rise = max(1, rise)
    if step < rise:
        return config.learning_rate * (step + 1) / rise
    if config.schedule == "step":
        falls = [config.step_factor for epoch in config.step_epochs if step >= epoch * steps_per_epoch]
        return config.learning_rate * math.prod(falls)
    done, whole = step - rise, max(1, total_steps - rise)
    if config.schedule == "triangle":
        return config.learning_rate * (1.0 - done / whole)
    return config.learning_rate * 0.5 * (1.0 + math.cos(math.pi * done / whole))


def warmed_up_average(decay: float) -> Callable[[Tensors, Tensors, Tensor | int], None]:
    """Returns the update of an exponential average whose decay rises as (1 + n) / (10 + n) up to `decay`.

    Early weights are thus forgotten quickly. Whole numbers, such as BatchNorm's counters, are copied. A tensor with
    infinite values, such as an attention mask, is copied too: it is a constant, and the mean of two infinities is NaN.
    """
    is_averaged: dict[torch.dtype, list[bool]] = {}

    def update(averaged: Tensors, current: Tensors, count: Tensor | int) -> None:
        now, kind = min(decay, (1 + int(count)) / (10 + int(count))), averaged[0].dtype
        if kind not in is_averaged:
            is_averaged[kind] = [kind.is_floating_point and bool(one.isfinite().all()) for one in averaged]
        pairs = list(zip(averaged, current, strict=True))
        moving = [pair for pair, moves in zip(pairs, is_averaged[kind], strict=True) if moves]
        if moving:
            ours, theirs = zip(*moving, strict=True)
            torch._foreach_lerp_(ours, theirs, 1.0 - now)
        for pair, moves in zip(pairs, is_averaged[kind], strict=True):
            if not moves:
                pair[0].copy_(pair[1])

    return torch.no_grad()(update)
