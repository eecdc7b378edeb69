"""The computation of a frame, from which all backends derive: uint8 frame and state in, maps and state out."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steadyseg.core.dropout import is_stochastic, set_dropout_active
from steadyseg.core.familiarity.head import FamiliarityHead, WatchedPredictor
from steadyseg.core.frame import UNKNOWN
from steadyseg.core.method import Method, draws_dropout, no_dropout
from steadyseg.core.motion import Motion
from steadyseg.core.picture_size import network_size
from steadyseg.core.prediction import Prediction
from steadyseg.core.predictors import AllMembers, Ensemble, MonteCarlo, OneMember, OnePass
from steadyseg.core.preprocess import Normalize, enlarge, nearest, resize
from steadyseg.core.temporal import State, smoothing_of
from steadyseg.core.tracing import is_fixed


class Outputs(NamedTuple):
    """Tensors of one frame of B streams: uint8 (B, H, W) maps at the frame's size, and the smoothed prediction at the
    network's."""

    label: Tensor
    confidence: Tensor
    entropy: Tensor
    disagreement: Tensor
    prediction: Prediction


class StreamingSegmenter(nn.Module):
    """preprocess -> predict -> smooth -> maps, each a method so that stages can be timed; `forward` is their chain.

    The mode switches the network's dropout. Raises InputError for a mode that draws dropout masks if the network has no
    dropout, and for a height out of range.
    """

    def __init__(
        self,
        network: nn.Module,
        mean: tuple[float, float, float],
        std: tuple[float, float, float],
        height: int,
        method: Method,
        head: FamiliarityHead | None = None,
    ) -> None:
        """`head`: the familiarity head for passes like this method's."""
        super().__init__()
        network_size(height, height, height)  # refuses a height out of range before any frame comes
        self.method, self.height = method, height
        self.fixed_size: tuple[int, int] | None = getattr(network, "fixed_size", None)
        """(h, w) of the network for any frame size, as in an exported graph; None if the frame's aspect decides."""
        self.normalize = Normalize(mean, std)
        self.smoothing = smoothing_of(method)
        if isinstance(network, Ensemble) and self.smoothing:
            self.smoothing = replace(self.smoothing, gated=False, geometric=False)  # as passes of dropout
        self.head_stride: int = getattr(network, "head_stride", 1)
        set_dropout_active(network, draws_dropout(method.mode))
        if draws_dropout(method.mode) and not is_stochastic(network):
            raise no_dropout(method.mode)
        self.head = head
        self.predictor = (
            WatchedPredictor(network, head, method.temperature, method.samples)
            if head
            else self.predictor_of(network, method.temperature)
        )

    def switch_dropout(self) -> None:
        """Sets the network's dropout for this mode before a pass, because another segmenter of the same network may
        have changed it."""
        set_dropout_active(self.predictor, draws_dropout(self.method.mode))

    def predictor_of(self, network: nn.Module, temperature: float | Tensor) -> nn.Module:
        """The predictor of a mode: one pass, N passes, all members of an ensemble, or in a vq mode one member."""
        if isinstance(network, Ensemble):
            return OneMember(network, temperature) if self.smoothing else AllMembers(network, temperature)
        samples = self.method.samples
        return OnePass(network, temperature) if samples == 1 else MonteCarlo(network, samples, temperature)

    def forward(
        self,
        frame: Tensor,
        state: State | None,
        gap: int | Tensor = 1,
        motion: Motion | None = None,
        predict: Callable[[Tensor], Prediction] | None = None,
    ) -> tuple[Outputs, State | None]:
        """(B, H, W, 3) uint8 RGB, the state (None: start anew), source frames since the last call -> outputs, next
        state.

        `predict` replaces the predictor, for callers that need its logits too.
        """
        mean, state = self.mean(frame, state, gap, motion, predict)
        return self.maps(mean, frame.shape[1], frame.shape[2]), state

    def mean(
        self,
        frame: Tensor,
        state: State | None,
        gap: int | Tensor = 1,
        motion: Motion | None = None,
        predict: Callable[[Tensor], Prediction] | None = None,
    ) -> tuple[Prediction, State | None]:
        """The temporal mean at the network's size, without the maps; arguments as in `forward`."""
        return self.smooth((predict or self.predictor)(self.preprocess(frame)), state, gap, motion)

    def size(self, height: int, width: int) -> tuple[int, int]:
        """The network's input size (h, w) for a frame of H x W."""
        return self.fixed_size or network_size(height, width, self.height)

    def preprocess(self, frame: Tensor) -> Tensor:
        """(B, H, W, 3) uint8 -> (B, 3, h, w) normalised float."""
        images = frame.permute(0, 3, 1, 2)  # channels-last in memory already
        return self.normalize(resize(images, self.size(frame.shape[1], frame.shape[2])))

    def smooth(
        self,
        now: Prediction,
        state: State | None,
        gap: int | Tensor,
        motion: Motion | None = None,
    ) -> tuple[Prediction, State | None]:
        """Averages over time in a vq mode; returns the prediction unchanged otherwise."""
        if self.smoothing is None:
            return replace(now, finite=now.is_finite()), None
        return self.smoothing(now, state, gap, motion)

    def state_size(self, height: int, width: int) -> tuple[int, int]:
        """(h, w) of the state, at which motion is estimated: the network's, or its coarser head's."""
        height, width = self.size(height, width)
        return -(-height // self.head_stride), -(-width // self.head_stride)

    def maps(self, prediction: Prediction, height: int, width: int) -> Outputs:
        """Four uint8 maps, computed at the network's size and enlarged to the frame's: the label by nearest neighbour,
        the rest bilinearly.

        A network with a coarser head has its mean probabilities enlarged first, and the label is their arg-max. A frame
        that is not finite has full uncertainty. Its label and `prediction` are of the past; without a temporal mean
        they are class 0 and uniform.
        """
        size = self.size(height, width)
        confidence, label = enlarge(prediction.probs, size).max(dim=1)
        entropy = prediction.entropy
        disagreement = (entropy - prediction.member_entropy).clamp_min(0.0)
        shades = torch.stack([entropy, disagreement], dim=1) * (1.0 / prediction.max_entropy)
        shades = torch.cat([confidence[:, None], enlarge(shades, size)], dim=1)
        label = label.to(torch.uint8)
        if not is_fixed(height, width) or size != (height, width):
            label = nearest(label, (height, width))
            shades = F.interpolate(shades, (height, width), mode="bilinear", align_corners=False)
        shades = _to_bytes(shades)
        if prediction.finite is not None:
            unknown = torch.tensor(UNKNOWN, dtype=torch.uint8, device=shades.device)[:, None, None]
            shades = torch.where(prediction.finite[..., None, None], shades, unknown)
            if self.smoothing is None:  # after the entropies, which a graph would compute twice
                label = torch.where(prediction.finite[..., None], label, 0)
                prediction = prediction.or_uniform()
        confidence, entropy, disagreement = shades.unbind(dim=1)
        return Outputs(label, confidence, entropy, disagreement, prediction)


def _to_bytes(shares: Tensor) -> Tensor:
    return (shares * 255.0).add(0.5).clamp(0.0, 255.0).to(torch.uint8)
