"""The training loop, as a generator of events: the caller owns display, logging and cancellation."""

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel

from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.seeds import mix_seed
from steadyseg.core.system.machine import autocast
from steadyseg.core.training.config import TrainConfig
from steadyseg.core.training.distributed import Processes, synchronise
from steadyseg.core.training.layout import use_channels_last
from steadyseg.core.training.optimizer import learning_rate, make_optimizer, warmed_up_average
from steadyseg.core.training.parts import Batch, Loss, Outputs, Run, TrainingParts
from steadyseg.core.training.run_folder import TrainingState, load_state, save_state


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
    """Samples per second of all processes together."""


@dataclass(frozen=True)
class EpochDone:
    """One pass over the data; the state to resume from is on disk."""

    epoch: int
    """Epochs done, this one included."""
    loss: float
    """Mean over the epoch's steps."""
    seconds: float
    metrics: dict[str, float]
    """Result of `evaluate` for the averaged weights; empty if no evaluation was due, and in every process but the
    first."""


def fit(parts: TrainingParts, config: TrainConfig, run: Run) -> Iterator[StepDone | EpochDone]:
    """Trains the network in place; after each EpochDone the state on disk holds all that is needed to resume there.

    On return the network holds the averaged weights. Snapshots of them are saved before the first epoch and then at
    evenly spaced epochs. A non-finite loss raises CheckFailed with the step; the last state stays on disk.

    With several processes each yields its own batches (`Processes.share`), and all do the same steps, with the gradient
    of all their samples. The first process evaluates and saves. On CUDA, BatchNorm's statistics are over all processes
    (SyncBatchNorm). On a CPU they are over each process's own batches, and the first process's are saved.
    """
    network, processes = parts.network, run.processes
    use_channels_last(network, run.device)
    torch.backends.cudnn.benchmark = run.device.type == "cuda"  # crops keep their size for many epochs
    if processes.count > 1 and run.device.type == "cuda":
        network = synchronise(network)
    optimizer = make_optimizer(network, config)
    average = AveragedModel(network, multi_avg_fn=warmed_up_average(config.average_decay), use_buffers=True)
    scaler = torch.amp.GradScaler(run.device.type, enabled=config.precision == "fp16")
    state = TrainingState(network, average, optimizer, scaler)
    first_epoch = _resume(state, run, config.epochs, parts.data) if run.resume else 0
    trained: nn.Module | None = None
    total_steps = config.epochs * parts.steps_per_epoch
    step = first_epoch * parts.steps_per_epoch

    for epoch in range(first_epoch, config.epochs):
        network.train()
        started, losses = time.perf_counter(), []
        for group in _group(parts.batches(epoch), config.accumulate):
            if trained is None:
                trained = wrap_processes(network, group[0][0], processes)
            torch.manual_seed(dropout_seed(config.seed, epoch, step, processes.rank))
            rate = learning_rate(config, step, parts.steps_per_epoch, total_steps)
            for parameters in optimizer.param_groups:
                parameters["lr"] = rate
            before = time.perf_counter()
            value = train_step(trained, group, parts.loss, optimizer, scaler, config, run)
            if not math.isfinite(value):
                raise CheckFailed(
                    f"the loss or its gradient became {value} at epoch {epoch + 1}, step {step + 1}; start in another "
                    "folder with a smaller --learning-rate"
                )
            average.update_parameters(network)
            step += 1
            losses.append(value)
            samples = processes.count * sum(len(targets) for _, targets in group)
            yield StepDone(epoch + 1, step, total_steps, value, rate, samples / (time.perf_counter() - before))

        metrics = {}
        due = config.evaluate_every and ((epoch + 1) % config.evaluate_every == 0 or epoch + 1 == config.epochs)
        if parts.evaluate and processes.is_main and due:
            average.module.eval()
            metrics = parts.evaluate(average.module)
        if processes.is_main:
            save_state(state, run.folder, epoch + 1, parts.data)
        processes.wait()
        yield EpochDone(epoch + 1, sum(losses) / len(losses), time.perf_counter() - started, metrics)

    network.load_state_dict(average.module.state_dict())
    network.eval()


def wrap_processes(called: nn.Module, inputs: Tensor, processes: Processes) -> nn.Module:
    """Returns the network to call in several processes, whose backward pass averages their gradients.

    A pass over the first of `inputs` shows whether some weights are unused. If all are used, DDP does not search for
    unused weights at every step.
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
    scaler: torch.amp.GradScaler,
    config: TrainConfig,
    run: Run,
) -> float:
    """Does one optimiser step over the parts of a batch and returns the loss; NaN where the gradient is not finite.

    The step follows the gradient of sum(losses) / sum(weights) over all parts and processes. In fp16, whose largest
    number is 65504, `scaler` multiplies the loss. A gradient that overflows skips the step and halves the scale; where
    the scale is 1 already, it counts as not finite.
    """
    optimizer.zero_grad(set_to_none=True)
    total, weight, outcomes = 0.0, 0.0, 1
    for number, (inputs, targets) in enumerate(parts, start=1):
        inputs = inputs.to(run.device, memory_format=torch.channels_last, non_blocking=True)
        targets = targets.to(run.device, non_blocking=True)
        more = number < len(parts)  # gradients travel once a step
        with network.no_sync() if more and isinstance(network, DistributedDataParallel) else nullcontext():
            with autocast(run.device.type, config.precision):
                outputs = _call(network, inputs)
            part, part_weight = loss(in_fp32(outputs), targets)
            if scaler.is_enabled() and number == 1:  # a sum over 400,000 pixels would leave no room for a scale above 1
                outcomes = count_outcomes(outputs)
            scaler.scale(part / outcomes).backward()
        total, weight = total + float(part.detach()), weight + float(part_weight)
    total, weight = run.processes.sums(total, weight)
    weight = max(weight, 1e-12)
    scaler.unscale_(optimizer)
    for gradient in [p.grad for p in network.parameters() if p.grad is not None]:
        # DDP averages the gradients of the processes; their sum is needed.
        gradient.div_(weight / outcomes / run.processes.count)
    norm = float(torch.nn.utils.clip_grad_norm_(network.parameters(), config.clip_norm or math.inf))
    if not math.isfinite(total):
        return total / weight
    scale = scaler.get_scale()  # 1 where the scaler is off
    if math.isfinite(norm):
        scaler.step(optimizer)
    scaler.update()
    was_halved = scaler.get_scale() < scale
    if not math.isfinite(norm) and (scale <= 1 or not was_halved):
        return math.nan  # a finite loss may have an infinite slope: one such step would spoil every weight
    return total / weight


def _call(network: nn.Module, inputs: Tensor) -> Outputs:
    """Calls the network; InputError where a batch norm behind a global pooling meets a single picture."""
    try:
        return cast(Outputs, network(inputs))
    except ValueError as error:
        if "more than 1 value per channel" not in str(error):
            raise
        raise InputError("this network cannot train on one picture at a time; give --batch-size 2") from error


def count_outcomes(outputs: Outputs) -> int:
    """Returns the predictions of a batch: B h w of logits (B, K, h, w), B of logits (B, K); equal in all processes."""
    logits = outputs[0] if isinstance(outputs, tuple) else outputs
    return logits.numel() // logits.shape[1]


def in_fp32(outputs: Outputs) -> Outputs:
    """Returns the outputs in single precision, because bf16 has too few digits for a loss; float64 stays as it is."""
    if isinstance(outputs, tuple):
        return tuple(cast(Tensor, in_fp32(one)) for one in outputs)
    return outputs if outputs.dtype == torch.float64 else outputs.float()


def epoch_order(samples: int, config: TrainConfig, epoch: int, processes: Processes) -> list[int]:
    """Returns the sample numbers of an epoch in this process's order, without those that do not fill a whole step.

    At every step several processes see exactly the samples of one process with a batch as large as all of their
    batches.
    """
    order = torch.randperm(samples, generator=torch.Generator().manual_seed(mix_seed(config.seed, epoch)))
    per_step = config.batch_size * config.accumulate * processes.count
    return processes.share(order[: samples // per_step * per_step], config.batch_size).tolist()


def dropout_seed(seed: int, epoch: int, step: int, rank: int) -> int:
    """Returns the seed of a step's dropout masks: it depends on the step alone, and differs between processes."""
    return mix_seed(seed, epoch, step, rank) if rank else mix_seed(seed, epoch, step)


def _resume(state: TrainingState, run: Run, epochs: int, data: str) -> int:
    """Loads the state and returns the number of epochs done; InputError where the processes find different numbers."""
    processes = run.processes
    done = processes.all_gather(processes.together(lambda: load_state(state, run.folder, epochs, data)))

    def check() -> None:
        if len(set(done)) > 1:
            raise InputError(f"{run.folder}: not the same folder for all processes; give one that all machines share")

    processes.together(check)
    return done[0]


def _group(batches: Iterable[Batch], size: int) -> Iterator[list[Batch]]:
    parts: list[Batch] = []
    for batch in batches:
        parts.append(batch)
        if len(parts) == size:
            yield parts
            parts = []
