"""The one training loop, as a generator: it yields what happened, the caller owns display, logging and cancellation."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel

from core.errors import CheckFailed, InputError
from core.seeds import mix_seed
from core.training.config import TrainConfig
from core.training.distributed import SINGLE_PROCESS, Processes, synchronise
from core.training.layout import use_channels_last
from core.training.run_folder import TrainingState, load_state, save_state

Batch = tuple[Tensor, Tensor]
"""Normalised inputs (B, 3, h, w) and targets (B, ...): ids, or what else the loss takes."""
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
    """Of all processes."""


@dataclass(frozen=True)
class EpochDone:
    """One pass over the data; the state to resume from is on disk."""

    epoch: int
    """Epochs done, this one included."""
    loss: float
    """Mean over the epoch's steps."""
    seconds: float
    metrics: dict[str, float]
    """What `evaluate` returned for the averaged weights, or empty (in every process but the first)."""


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
    keep: Callable[[nn.Module, int], None] = lambda network, epochs_done: None,
    resume: bool = False,
    processes: Processes = SINGLE_PROCESS,
) -> Iterator[StepDone | EpochDone]:
    """Trains in place; after each EpochDone `run/state.safetensors` holds all that is needed to go on from there.

    `batches(epoch)` yields `steps_per_epoch * accumulate` batches that depend on (seed, epoch) alone. On return the
    network holds the averaged weights; `keep` is shown them before the first epoch and after each one, with the epochs
    done. A non-finite loss raises CheckFailed with the step; the last state stays on disk.

    Of several processes each yields its own batches (`Processes.share`), and all do the same steps: the gradient is
    that of all their samples. The first one evaluates and saves. BatchNorm's statistics are those of all processes on
    CUDA (SyncBatchNorm) and those of each process's own batches on a CPU; kept are the first one's.
    """
    use_channels_last(network, device)
    if processes.count > 1 and device.type == "cuda":
        network = synchronise(network)
    optimizer = make_optimizer(network, config)
    average = AveragedModel(network, multi_avg_fn=_warm_up(config.average_decay), use_buffers=True)
    state = TrainingState(network, average, optimizer)
    first_epoch = _resume(state, run, config.epochs, processes) if resume else 0
    if not first_epoch and processes.leads:
        keep(average.module, 0)
    called: nn.Module = MeanOfPasses(network, config.train_samples) if config.train_samples > 1 else network
    trained: nn.Module | None = None
    total_steps = config.epochs * steps_per_epoch
    step = first_epoch * steps_per_epoch

    for epoch in range(first_epoch, config.epochs):
        network.train()
        started, losses = time.perf_counter(), []
        for parts in _group(batches(epoch), config.accumulate):
            if trained is None:
                trained = wrap_processes(called, parts[0][0], processes)
            torch.manual_seed(dropout_seed(config.seed, epoch, step, processes.rank))
            rate = learning_rate(config, step, steps_per_epoch, total_steps)
            for group in optimizer.param_groups:
                group["lr"] = rate
            before = time.perf_counter()
            value = train_step(trained, parts, loss, optimizer, config, device, processes)
            if not math.isfinite(value):
                raise CheckFailed(
                    f"the loss or its gradient became {value} at epoch {epoch + 1}, step {step + 1}; the last whole "
                    f"epoch is "
                    f"in {run}: continue from it with --resume and a smaller learning rate"
                )
            average.update_parameters(network)
            step += 1
            losses.append(value)
            samples = processes.count * sum(len(targets) for _, targets in parts)
            yield StepDone(epoch + 1, step, total_steps, value, rate, samples / (time.perf_counter() - before))

        # once an epoch: look, then save
        metrics = {}
        if evaluate and processes.leads and config.evaluate_every and _is_due(epoch + 1, config):
            average.module.eval()
            metrics = evaluate(average.module)
        if processes.leads:
            keep(average.module, epoch + 1)
            save_state(state, run, epochs_done=epoch + 1)
        processes.wait()
        yield EpochDone(epoch + 1, sum(losses) / len(losses), time.perf_counter() - started, metrics)

    network.load_state_dict(average.module.state_dict())
    network.eval()


def wrap_processes(called: nn.Module, inputs: Tensor, processes: Processes) -> nn.Module:
    """What several processes call instead: a backward pass gives all of them the mean of their gradients.

    `inputs` is a batch to look for weights that a pass does not use; where there are none DDP need not look at every
    step.
    """
    if processes.count == 1:
        return called
    weights = [parameter for parameter in called.parameters() if parameter.requires_grad]
    called.eval()  # running statistics stay as they are
    used = torch.autograd.grad(called(inputs[:1].to(weights[0].device)).sum(), weights, allow_unused=True)
    called.train()
    return DistributedDataParallel(called, find_unused_parameters=any(gradient is None for gradient in used))


def train_step(
    network: nn.Module,
    parts: list[Batch],
    loss: Loss,
    optimizer: torch.optim.Optimizer,
    config: TrainConfig,
    device: torch.device,
    processes: Processes = SINGLE_PROCESS,
) -> float:
    """One optimiser step over the parts of a batch: the gradient is that of sum(losses) / sum(weights) over all parts
    and processes."""
    optimizer.zero_grad(set_to_none=True)
    total, weight = 0.0, 0.0
    for number, (inputs, targets) in enumerate(parts, start=1):
        inputs = inputs.to(device, memory_format=torch.channels_last, non_blocking=True)
        targets = targets.to(device, non_blocking=True)
        more = number < len(parts)  # gradients travel once a step
        with network.no_sync() if more and isinstance(network, DistributedDataParallel) else nullcontext():
            with torch.autocast(device.type, torch.bfloat16, enabled=config.precision == "bf16"):
                logits = network(inputs)
            part, part_weight = loss(logits if logits.dtype == torch.float64 else logits.float(), targets)
            part.backward()
        total, weight = total + float(part.detach()), weight + float(part_weight)
    total, weight = processes.sums(total, weight)
    weight = max(weight, 1e-12)
    parameters = [p for p in network.parameters() if p.grad is not None]
    for parameter in parameters:  # the gradient is the mean over the processes: times their number it is the sum
        parameter.grad.div_(weight / processes.count)  # type: ignore[union-attr]
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
    rise = round(config.warmup * total_steps)
    if config.schedule == "one-cycle":
        rise = max(1, rise)
    if step < rise:
        return config.learning_rate * (step + 1) / rise
    if config.schedule == "step":
        falls = [config.step_factor for epoch in config.step_epochs if step >= epoch * steps_per_epoch]
        return config.learning_rate * math.prod(falls)
    return config.learning_rate * 0.5 * (1.0 + math.cos(math.pi * (step - rise) / max(1, total_steps - rise)))


def epoch_order(samples: int, config: TrainConfig, epoch: int, processes: Processes) -> list[int]:
    """The sample numbers of an epoch in this process's order; what fills no whole step of all processes is left out.

    At every step several processes see exactly what one process with a batch that much bigger would see.
    """
    order = torch.randperm(samples, generator=torch.Generator().manual_seed(mix_seed(config.seed, epoch)))
    per_step = config.batch_size * config.accumulate * processes.count
    return processes.share(order[: samples // per_step * per_step], config.batch_size).tolist()


def dropout_seed(seed: int, epoch: int, step: int, rank: int) -> int:
    """Masks depend on the step alone, and differ between processes."""
    return mix_seed(seed, epoch, step, rank) if rank else mix_seed(seed, epoch, step)


def _resume(state: TrainingState, run: Path, most: int, processes: Processes) -> int:
    """Whole epochs done; InputError where the processes see different ones."""
    epochs = processes.gathered(processes.together(lambda: load_state(state, run, most)))

    def check() -> None:
        if len(set(epochs)) > 1:
            raise InputError(f"{run}: not the same folder for all processes; give one that all machines share")

    processes.together(check)
    return epochs[0]


def _warm_up(decay: float) -> Callable[[Tensors, Tensors, Tensor | int], None]:
    """Exponential average whose decay rises as (1 + n) / (10 + n), so that early weights are forgotten quickly."""

    def update(averaged: Tensors, current: Tensors, count: Tensor | int) -> None:
        now = min(decay, (1 + int(count)) / (10 + int(count)))
        if averaged[0].is_floating_point():
            torch._foreach_lerp_(averaged, current, 1.0 - now)
        else:  # BatchNorm's counters
            torch._foreach_copy_(averaged, current)

    return torch.no_grad()(update)


def _group(batches: Iterable[Batch], size: int) -> Iterator[list[Batch]]:
    parts: list[Batch] = []
    for batch in batches:
        parts.append(batch)
        if len(parts) == size:
            yield parts
            parts = []


def _is_due(epochs_done: int, config: TrainConfig) -> bool:
    return epochs_done % config.evaluate_every == 0 or epochs_done == config.epochs


class MeanOfPasses(nn.Module):
    """log of the mean softmax of N passes of one batch (B, K, ...), in single precision or more (arXiv 2105.12639).

    Its cross-entropy is the NLL of the mean probabilities, as it is normalised already; a loss that enlarges it first
    interpolates logarithms. BatchNorm's running statistics move N times a batch.
    """

    def __init__(self, network: nn.Module, samples: int) -> None:
        super().__init__()
        self.network, self.samples = network, samples

    def forward(self, x: Tensor) -> Tensor:
        passes = [self._log_probs(x) for _ in range(self.samples)]
        return torch.logsumexp(torch.stack(passes), 0) - math.log(self.samples)

    def _log_probs(self, x: Tensor) -> Tensor:
        logits = self.network(x)
        return torch.log_softmax(logits, 1, dtype=torch.promote_types(logits.dtype, torch.float32))
