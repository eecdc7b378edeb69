"""The whole per-frame computation, once: uint8 frame and state in, four uint8 maps and state out."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.compiler import is_exporting

from core.checkpoint import CheckpointMeta
from core.dropout import is_stochastic, set_dropout_active
from core.errors import InputError
from core.motion import Motion
from core.prediction import Prediction
from core.predictors import AllMembers, Ensemble, MonteCarlo, OneMember, OnePass
from core.preprocess import Normalize, enlarge, nearest, network_size, resize
from core.segmenter import Method
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
        self.fixed_size: tuple[int, int] | None = None
        """(h, w) of the network whatever the frame's size, as an exported graph has it; None: the frame's aspect decides."""
        self.normalize = Normalize(mean, std)
        self.smoothing = smoothing if kind.temporal else None
        self.temperature = temperature
        self.head_stride: int = getattr(network, "head_stride", 1)
        set_dropout_active(network, kind.dropout)
        if kind.dropout and not is_stochastic(network):
            raise InputError(
                f"mode {mode} draws dropout masks and this network has no dropout; use mode {mode.replace('bnn', 'dnn')}"
            )
        self.predictor = self.predictor_of(network, temperature)

    def predictor_of(self, network: nn.Module, temperature: float | Tensor) -> nn.Module:
        """How this mode looks at one frame: one pass, N passes, all members of an ensemble, or in a vq mode one of them."""
        if isinstance(network, Ensemble):
            return OneMember(network, temperature) if self.smoothing else AllMembers(network, temperature)
        return OnePass(network, temperature) if self.samples == 1 else MonteCarlo(network, self.samples, temperature)

    def set_temperature(self, temperature: float) -> None:
        """What the logits are divided by from now on."""
        self.temperature = temperature
        self.predictor = self.predictor_of(self.predictor.get_submodule("network"), temperature)

    def forward(self, frame: Tensor, state: State | None, gap: int | Tensor = 1) -> tuple[Outputs, State | None]:
        """(1, H, W, 3) uint8 RGB, the state (None: start anew), source frames since the last call -> outputs, next state."""
        prediction, state = self.smooth(self.predict(self.preprocess(frame)), state, gap)
        return self.maps(prediction, frame.shape[1], frame.shape[2]), state

    def method(self, meta: CheckpointMeta) -> Method:
        """The facts of this computation for reports."""
        tau, window = (self.smoothing.tau, self.smoothing.window) if self.smoothing else (None, None)
        return Method(
            self.mode, self.samples, tau, window, self.temperature, self.height, meta.width, motion=self.follows_motion
        )

    def size(self, height: int, width: int) -> tuple[int, int]:
        """(h, w) at which the network sees a frame of H x W."""
        return self.fixed_size or network_size(height, width, self.height)

    def preprocess(self, frame: Tensor) -> Tensor:
        """(1, H, W, 3) uint8 -> (1, 3, h, w) normalised float."""
        images = frame.permute(0, 3, 1, 2)  # channels-last in memory already
        return self.normalize(resize(images, self.size(frame.shape[1], frame.shape[2])))

    def predict(self, images: Tensor) -> Prediction:
        """(1, 3, h, w) -> the single-frame prediction."""
        return self.predictor(images)

    def smooth(
        self, now: Prediction, state: State | None, gap: int | Tensor, motion: Motion | None = None
    ) -> tuple[Prediction, State | None]:
        """The temporal mean of a vq mode; the identity otherwise."""
        return (now, None) if self.smoothing is None else self.smoothing(now, state, gap, motion)

    @property
    def follows_motion(self) -> bool:
        """Whether `smooth` wants to know the motion since the previous frame."""
        return self.smoothing is not None and self.smoothing.motion

    def state_size(self, height: int, width: int) -> tuple[int, int]:
        """(h, w) of the state, at which motion is estimated: the network's, or that of its coarser head."""
        return tuple(-(-length // self.head_stride) for length in self.size(height, width))  # type: ignore[return-value]

    def maps(self, prediction: Prediction, height: int, width: int) -> Outputs:
        """Four uint8 maps at the frame's size: made at the network's, label enlarged by nearest neighbour, the rest bilinearly.

        A network with a coarser head has its mean probabilities enlarged first, and the label is their arg-max.
        """
        size = self.size(height, width)
        confidence, label = enlarge(prediction.probs, size).max(dim=1)
        entropy = prediction.entropy
        disagreement = (entropy - prediction.member_entropy).clamp_min(0.0)
        shades = torch.stack([entropy, disagreement], dim=1) * (1.0 / prediction.max_entropy)
        shades = torch.cat([confidence[:, None], enlarge(shades, size)], dim=1)
        label = label.to(torch.uint8)
        if is_exporting() or size != (height, width):
            label = nearest(label, (height, width))
            shades = F.interpolate(shades, (height, width), mode="bilinear", align_corners=False)
        confidence, entropy, disagreement = _to_bytes(shades).unbind(dim=1)
        return Outputs(label, confidence, entropy, disagreement, prediction)


def _to_bytes(shares: Tensor) -> Tensor:
    return (shares * 255.0).add(0.5).clamp(0.0, 255.0).to(torch.uint8)
