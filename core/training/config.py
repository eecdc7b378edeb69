"""Settings of the training loop: one frozen dataclass is both the command line's flags and the checkpoint's record.

No torch is imported here, so that help is instant.
"""

import math
from dataclasses import dataclass
from typing import Literal

from steadyseg.core.options import Rare

ScheduleName = Literal["one-cycle", "triangle", "step", "constant"]
OptimizerName = Literal["adam", "adamw", "sgd", "nesterov"]


@dataclass(frozen=True)
class TrainConfig:
    """Settings of the training loop; all random numbers derive from (seed, epoch, sample)."""

    epochs: int = 60
    """Passes over the training data."""
    batch_size: int = 4
    """Images per network call and process."""
    accumulate: Rare[int] = 1
    """Network calls per optimiser step, whose gradient is of batch_size * accumulate * processes images. BatchNorm
    normalises over all processes on CUDA, over each process on a CPU."""
    optimizer: Rare[OptimizerName] = "adamw"
    """adam (published for CamVid), adamw, sgd with momentum 0.9, or nesterov: sgd with Nesterov's momentum 0.9."""
    learning_rate: float = 3e-3
    """Peak learning rate."""
    weight_decay: Rare[float] = 1e-4
    """Weight decay: decoupled in adamw, L2 in other optimisers; biases and normalisation have no decay."""
    schedule: Rare[ScheduleName] = "one-cycle"
    """one-cycle: linear rise, cosine fall to zero. triangle: linear rise and fall. step: falls by step_factor at each
    of step_epochs. constant: one rate."""
    warmup: Rare[float] = 0.15
    """Share of all steps in which the rate rises linearly; constant: none."""
    step_epochs: Rare[tuple[int, ...]] = (100,)
    """Epochs after which the step schedule falls (published for CamVid: 100 of 130)."""
    step_factor: Rare[float] = 0.2
    """Factor of each fall (published: 0.2, from 1e-3 to 2e-4)."""
    clip_norm: Rare[float] = 1.0
    """Largest gradient norm; 0: no clipping."""
    average_decay: Rare[float] = 0.998
    """Decay per step of the moving average of the weights, which is the trained model. With 0 the model is the last
    weights."""
    seed: int = 0
    """Seed of initial weights, order of the images, augmentation and dropout."""
    precision: Rare[Literal["auto", "fp32", "bf16", "fp16"]] = "auto"
    """bf16 and fp16: autocast of the forward pass; fp16 scales the loss and skips a step whose gradient overflows.
    auto: bf16 on CPUs with its instructions and on CUDA cards from Ampere on, fp16 on Volta and Turing, else fp32."""
    threads: Rare[int] = 0
    """CPU threads; 0: torch chooses. With 1, runs on a CPU repeat bit for bit."""
    evaluate_every: Rare[int] = 5
    """Epochs between evaluations on the held-out images; 0: none."""


TRAIN_RANGES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("epochs", "batch_size", "accumulate"), (1, math.inf)),
    **dict.fromkeys(("learning_rate", "weight_decay", "step_epochs", "step_factor", "clip_norm"), (0, math.inf)),
    **dict.fromkeys(("threads", "evaluate_every"), (0, math.inf)),
    **dict.fromkeys(("warmup", "average_decay"), (0, 1)),
}
