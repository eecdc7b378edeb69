"""The optimiser, its learning rate at every step, and the moving average of the weights."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from core.training.config import TrainConfig

Tensors = tuple[Tensor, ...] | list[Tensor]


def make_optimizer(network: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """Returns the configured optimiser; biases and normalisation parameters take no weight decay."""
    decayed = [p for p in network.parameters() if p.requires_grad and p.ndim > 1]
    plain = [p for p in network.parameters() if p.requires_grad and p.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": config.weight_decay}, {"params": plain, "weight_decay": 0.0}]
    if config.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=config.learning_rate, momentum=0.9)
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    return kind(groups, lr=config.learning_rate)


def learning_rate(config: TrainConfig, step: int, steps_per_epoch: int, total_steps: int) -> float:
    """Returns the rate of a step (from 0): a function of its number, so that a resumed run needs no schedule state."""
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
    return config.learning_rate * 0.5 * (1.0 + math.cos(math.pi * (step - rise) / max(1, total_steps - rise)))


def warmed_up_average(decay: float) -> Callable[[Tensors, Tensors, Tensor | int], None]:
    """Returns the update of an exponential average whose decay rises as (1 + n) / (10 + n) up to `decay`.

    Early weights are thus forgotten quickly.
    """

    def update(averaged: Tensors, current: Tensors, count: Tensor | int) -> None:
        now = min(decay, (1 + int(count)) / (10 + int(count)))
        if averaged[0].is_floating_point():
            torch._foreach_lerp_(averaged, current, 1.0 - now)
        else:  # BatchNorm's counters
            torch._foreach_copy_(averaged, current)

    return torch.no_grad()(update)
