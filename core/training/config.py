"""What a user can set, as frozen dataclasses: the flags of the command line and the record in the checkpoint are one
object.

No torch here: the command line reads these to print its help.
"""

import math
from dataclasses import dataclass
from typing import Literal

ScheduleName = Literal["one-cycle", "step", "constant"]
OptimizerName = Literal["adam", "adamw", "sgd"]


@dataclass(frozen=True)
class TrainConfig:
    """The training loop's settings; everything random derives from (seed, epoch, sample)."""

    epochs: int = 60
    """Passes over the training data."""
    batch_size: int = 4
    """Examples per network call of each process; BatchNorm sees those of all processes on CUDA, of its own on a CPU."""
    accumulate: int = 1
    """Network calls per optimiser step; the gradient is that of one batch of batch_size * accumulate * processes."""
    train_samples: int = 1
    """Dropout passes of every batch whose probabilities are averaged in the loss (training-phase ensemble)."""
    optimizer: OptimizerName = "adamw"
    """adam (published for CamVid), adamw, or sgd with momentum 0.9."""
    learning_rate: float = 3e-3
    """Peak value."""
    weight_decay: float = 1e-4
    """Decoupled in adamw, L2 in adam and sgd; never on biases and normalisation."""
    schedule: ScheduleName = "one-cycle"
    """one-cycle: linear rise, cosine fall to zero; step: falls by `step_factor` at each of `step_epochs`; constant."""
    warmup: float = 0.15
    """Share of all steps in which one-cycle and step rise linearly."""
    step_epochs: tuple[int, ...] = (100,)
    """Epochs, counted from the first, at which the step schedule falls (published for CamVid: 100 of 130)."""
    step_factor: float = 0.2
    """What the rate is multiplied by at each of them (published: 1e-3 to 2e-4)."""
    clip_norm: float = 1.0
    """Largest gradient norm; 0 does not clip."""
    average_decay: float = 0.998
    """Decay per step of the averaged weights, warmed up; the average is what is kept. 0 keeps the last weights."""
    seed: int = 0
    """Seed of initial weights, order, augmentation and dropout."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """bf16: autocast of the forward pass; auto: bf16 on CUDA and on CPUs that compute in it, else fp32."""
    threads: int = 0
    """CPU threads; 0 leaves the choice to torch. 1 makes CPU runs repeatable bit by bit."""
    evaluate_every: int = 5
    """Epochs between evaluations on the held-back slice of train; 0 never evaluates."""
    keep_checkpoints: int = 0
    """So many averaged weights are kept on the way, in RUN/checkpoints: the initial ones and then at evenly spaced
    epochs (`analyze landscape --run` draws them); 0 keeps none."""


TRAIN_RANGES: dict[str, tuple[float, float]] = {
    "epochs": (1, math.inf),
    "batch_size": (1, math.inf),
    "accumulate": (1, math.inf),
    "train_samples": (1, math.inf),
    "learning_rate": (0, math.inf),
    "weight_decay": (0, math.inf),
    "warmup": (0, 1),
    "step_epochs": (0, math.inf),
    "step_factor": (0, math.inf),
    "clip_norm": (0, math.inf),
    "average_decay": (0, 1),
    "threads": (0, math.inf),
    "evaluate_every": (0, math.inf),
    "keep_checkpoints": (0, math.inf),
}
