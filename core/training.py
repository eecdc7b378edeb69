"""The one training loop, as a generator: it yields what happened, the caller owns display, logging and cancellation."""

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from core.config import TrainConfig
from core.errors import CheckFailed
from core.resume import TrainingState, load_state, save_state

Batch = tuple[Tensor, Tensor]
"""Normalised inputs (B, 3, h, w) and integer targets (B, ...)."""
Tensors = tuple[Tensor, ...] | list[Tensor]
Loss = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""(logits, targets) -> (sum of the weighted losses, sum of the weights), so that parts of a batch add up exactly."""


@dataclass(frozen=True)
class StepDone:
    """One optimiser step."""

    epoch: int
    step: int
    """Steps done in all, this one included."""
    total_steps: int
    loss: float
    learning_rate: float
    samples_per_s: float


@dataclass(frozen=True)
class EpochDone:
    """One pass over the data; the state to resume from is on disk."""

    epoch: int
    """Epochs done, this one included."""
    loss: float
    """Mean over the epoch's steps."""
    seconds: float
    metrics: dict[str, float]
    """What `evaluate` returned for the averaged weights, or empty."""


def fit(
    network: nn.Module,
    batches: Callable[[int], Iterable[Batch]],
    loss: Loss,
    config: TrainConfig,
    run: Path,
    *,
    steps_per_epoch: int,
    device: torch.device,
    evaluate: Callable[[nn.Module], dict[str, float]] | None = None,
    resume: bool = False,
) -> Iterator[StepDone | EpochDone]:
    """Trains in place; after each EpochDone `run/state.safetensors` holds all that is needed to go on from there.

    `batches(epoch)` yields `steps_per_epoch * accumulate` batches that depend on (seed, epoch) alone. On return the network
    holds the averaged weights. A non-finite loss raises CheckFailed with the step; the last state stays on disk.
    """
    network.to(device).to(memory_format=torch.channels_last)
    optimizer = make_optimizer(network, config)
    average = AveragedModel(network, multi_avg_fn=_warmed_up(config.average_decay), use_buffers=True)
    state = TrainingState(network, average, optimizer)
    first_epoch = load_state(state, run) if resume else 0
    total_steps = config.epochs * steps_per_epoch
    step = first_epoch * steps_per_epoch

    for epoch in range(first_epoch, config.epochs):
        network.train()
        started, losses = time.perf_counter(), []
        for parts in _grouped(batches(epoch), config.accumulate):
            torch.manual_seed(mixed_seed(config.seed, epoch, step))  # dropout masks depend on the step alone
            rate = learning_rate(config, step, steps_per_epoch, total_steps)
            for group in optimizer.param_groups:
                group["lr"] = rate
            before = time.perf_counter()
            value = train_step(network, parts, loss, optimizer, config, device)
            if not math.isfinite(value):
                raise CheckFailed(
                    f"the loss or its gradient became {value} at epoch {epoch + 1}, step {step + 1}; the last whole epoch is "
                    f"in {run}: continue from it with --resume and a smaller learning rate"
                )
            average.update_parameters(network)
            step += 1
            losses.append(value)
            samples = sum(len(targets) for _, targets in parts)
            yield StepDone(epoch + 1, step, total_steps, value, rate, samples / (time.perf_counter() - before))

        # once an epoch: look, then save
        metrics = {}
        if evaluate and config.evaluate_every and _is_due(epoch + 1, config):
            average.module.eval()
            metrics = evaluate(average.module)
        save_state(state, run, epochs_done=epoch + 1)
        yield EpochDone(epoch + 1, sum(losses) / len(losses), time.perf_counter() - started, metrics)

    network.load_state_dict(average.module.state_dict())
    network.eval()


def train_step(
    network: nn.Module,
    parts: list[Batch],
    loss: Loss,
    optimizer: torch.optim.Optimizer,
    config: TrainConfig,
    device: torch.device,
) -> float:
    """One optimiser step over the parts of a batch: the gradient is that of sum(losses) / sum(weights) over all parts."""
    optimizer.zero_grad(set_to_none=True)
    total, weight = 0.0, 0.0
    for inputs, targets in parts:
        inputs = inputs.to(device, memory_format=torch.channels_last, non_blocking=True)
        targets = targets.to(device, non_blocking=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=config.precision == "bf16"):
            logits = network(inputs)
        part, part_weight = loss(logits if logits.dtype == torch.float64 else logits.float(), targets)
        part.backward()
        total, weight = total + float(part.detach()), weight + float(part_weight)
    weight = max(weight, 1e-12)
    parameters = [p for p in network.parameters() if p.grad is not None]
    for parameter in parameters:
        parameter.grad.div_(weight)  # type: ignore[union-attr]
    norm = float(torch.nn.utils.clip_grad_norm_(parameters, config.clip_norm or math.inf))
    if not math.isfinite(norm):  # a finite loss may have an infinite slope: one such step would spoil every weight
        return math.nan
    if math.isfinite(total):
        optimizer.step()
    return total / weight


def make_optimizer(network: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """The configured optimiser; biases and normalisation parameters take no weight decay."""
    decayed = [p for p in network.parameters() if p.requires_grad and p.ndim > 1]
    plain = [p for p in network.parameters() if p.requires_grad and p.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": config.weight_decay}, {"params": plain, "weight_decay": 0.0}]
    if config.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=config.learning_rate, momentum=0.9)
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    return kind(groups, lr=config.learning_rate)


def learning_rate(config: TrainConfig, step: int, steps_per_epoch: int, total_steps: int) -> float:
    """The rate of a step (from 0) is a function of its number, so a resumed run needs no schedule state."""
    if config.schedule == "constant":
        return config.learning_rate
    if config.schedule == "step":
        return config.learning_rate * (config.step_factor if step >= config.step_epoch * steps_per_epoch else 1.0)
    rise = max(1, round(config.warmup * total_steps))
    if step < rise:
        return config.learning_rate * (step + 1) / rise
    return config.learning_rate * 0.5 * (1.0 + math.cos(math.pi * (step - rise) / max(1, total_steps - rise)))


def mixed_seed(*parts: int) -> int:
    """One 63-bit seed from several numbers, the same on every machine."""
    return random.Random(",".join(map(str, parts))).getrandbits(63)  # str seeds go through SHA-512


def _warmed_up(decay: float) -> Callable[[Tensors, Tensors, Tensor | int], None]:
    """Exponential average whose decay rises as (1 + n) / (10 + n), so that early weights are forgotten quickly."""

    def update(averaged: Tensors, current: Tensors, count: Tensor | int) -> None:
        now = min(decay, (1 + int(count)) / (10 + int(count)))
        if averaged[0].is_floating_point():
            torch._foreach_lerp_(averaged, current, 1.0 - now)
        else:  # BatchNorm's counters
            torch._foreach_copy_(averaged, current)

    return torch.no_grad()(update)


def _grouped(batches: Iterable[Batch], size: int) -> Iterator[list[Batch]]:
    parts: list[Batch] = []
    for batch in batches:
        parts.append(batch)
        if len(parts) == size:
            yield parts
            parts = []


def _is_due(epochs_done: int, config: TrainConfig) -> bool:
    return epochs_done % config.evaluate_every == 0 or epochs_done == config.epochs
