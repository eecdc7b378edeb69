"""The whole per-frame computation, once: uint8 frame and state in, four uint8 maps and state out."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.dropout import is_stochastic, set_dropout_active
from core.errors import InputError
from core.prediction import Prediction
from core.predictors import MonteCarlo, OnePass
from core.preprocess import Normalize, network_size, resize
from core.temporal import State, TemporalSmoothing
from seg.options import ModeName


@dataclass(frozen=True)
class Mode:
    """What a mode's name means: dropout drawn or not, frames averaged or not."""

    dropout: bool
    temporal: bool
    default_samples: int


MODES: dict[str, Mode] = {
    "dnn": Mode(dropout=False, temporal=False, default_samples=1),
    "vq-dnn": Mode(dropout=False, temporal=True, default_samples=1),
    "bnn": Mode(dropout=True, temporal=False, default_samples=30),
    "vq-bnn": Mode(dropout=True, temporal=True, default_samples=1),
}
"""dnn and vq-dnn switch the dropout of the same weights off; bnn averages N passes (published: 30 on CamVid)."""


class Outputs(NamedTuple):
    """Tensors of one frame: uint8 (1, H, W) maps at the frame's size, and the smoothed prediction at the network's."""

    label: Tensor
    confidence: Tensor
    entropy: Tensor
    disagreement: Tensor
    prediction: Prediction


class StreamingSegmenter(nn.Module):
    """preprocess -> predict -> smooth -> maps, each a method so that stages can be timed; `forward` is their chain.

    It owns its network: the mode switches the dropout of that very object.
    """

    def __init__(
        self,
        network: nn.Module,
        mean: tuple[float, float, float],
        std: tuple[float, float, float],
        height: int,
        *,
        mode: ModeName = "vq-dnn",
        samples: int | None = None,
        smoothing: TemporalSmoothing = TemporalSmoothing(),  # noqa: B008 (frozen)
        temperature: float = 1.0,
    ) -> None:
        super().__init__()
        if mode not in MODES:
            raise InputError(f"unknown mode {mode!r}; choose from {', '.join(MODES)}")
        kind = MODES[mode]
        self.samples = kind.default_samples if samples is None else samples
        if not kind.dropout and self.samples != 1:
            raise InputError(
                f"mode {mode} has no dropout, so {self.samples} samples would all be equal; use 1 or a bnn mode"
            )
        network_size(height, height, height)  # refuses a height out of range before any frame comes
        self.mode, self.height = mode, height
        self.normalize = Normalize(mean, std)
        self.smoothing = smoothing if kind.temporal else None
        set_dropout_active(network, kind.dropout)
        if kind.dropout and not is_stochastic(network):
            raise InputError(
                f"mode {mode} draws dropout masks and this network has no dropout; use mode {mode.replace('bnn', 'dnn')}"
            )
        self.predictor: nn.Module = (
            OnePass(network, temperature) if self.samples == 1 else MonteCarlo(network, self.samples, temperature)
        )

    def forward(self, frame: Tensor, state: State | None, gap: int = 1) -> tuple[Outputs, State | None]:
        """(1, H, W, 3) uint8 RGB, the state (None: start anew), source frames since the last call -> outputs, next state."""
        prediction, state = self.smooth(self.predict(self.preprocess(frame)), state, gap)
        return self.maps(prediction, frame.shape[1], frame.shape[2]), state

    def preprocess(self, frame: Tensor) -> Tensor:
        """(1, H, W, 3) uint8 -> (1, 3, h, w) normalised float."""
        images = frame.permute(0, 3, 1, 2).float()  # channels-last in memory already
        return self.normalize(resize(images, network_size(frame.shape[1], frame.shape[2], self.height)))

    def predict(self, images: Tensor) -> Prediction:
        """(1, 3, h, w) -> the single-frame prediction."""
        return self.predictor(images)

    def smooth(self, now: Prediction, state: State | None, gap: int) -> tuple[Prediction, State | None]:
        """The temporal mean of a vq mode; the identity otherwise."""
        return (now, None) if self.smoothing is None else self.smoothing(now, state, gap)

    def maps(self, prediction: Prediction, height: int, width: int) -> Outputs:
        """Four uint8 maps, made at the network's size and enlarged: label by nearest neighbour, the rest bilinearly."""
        scale = 255.0 / prediction.max_entropy
        confidence, label = prediction.probs.max(dim=1)
        entropy = prediction.entropy
        disagreement = (entropy - prediction.member_entropy).clamp_min(0.0)
        shades = [_to_bytes(confidence * 255.0), _to_bytes(entropy * scale), _to_bytes(disagreement * scale)]
        label = label.to(torch.uint8)
        if label.shape[-2:] != (height, width):
            label = F.interpolate(label[:, None], (height, width), mode="nearest-exact")[:, 0]
            shades = [F.interpolate(s[:, None], (height, width), mode="bilinear")[:, 0] for s in shades]
        confidence, entropy, disagreement = shades
        return Outputs(label, confidence, entropy, disagreement, prediction)


def _to_bytes(values: Tensor) -> Tensor:
    return values.add(0.5).clamp(0.0, 255.0).to(torch.uint8)
