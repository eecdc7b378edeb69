"""The streaming computation with flat inputs and outputs, as graphs need them."""

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steadyseg.core.cuts import CUT, MAX_GAP, distance, structure, thumbnail
from steadyseg.core.dropout import drawing_dropouts, dropout_calls
from steadyseg.core.expected import QUARTERS, STRIDE, SURE
from steadyseg.core.familiarity.head import WatchedPredictor
from steadyseg.core.frame import FAMILIARITY_OUTPUTS, MOTION_INPUTS, RARE_LEVEL, FrameScores
from steadyseg.core.motion import Motion, no_motion
from steadyseg.core.picture_size import SIZE_MULTIPLE
from steadyseg.core.prediction import Prediction
from steadyseg.core.predictors import OnePass
from steadyseg.core.preprocess import resize
from steadyseg.core.reference import ReferenceScores, familiarity_share, smooth_score
from steadyseg.core.temporal import State, forget
from steadyseg.core.tracing import Signature
from steadyseg.seg.streaming import Outputs, StreamingSegmenter

NETWORK_OUTPUTS = ("logits", "score", "energies")
"""Outputs of the network; all but the first only where the segmenter computes familiarity."""


class ExportedStep(nn.Module):
    """(frame, gap, reset[, motion, trust], *state, *masks) -> (label, confidence, entropy, disagreement[, probs],
    *state, *familiarity, image, *inner).

    The first axis of every tensor is 1. `frame`: uint8 (1, H, W, 3). `gap`: float (1, 1), source frames since the last
    call. `reset`: float (1, 1), where 1 starts anew, as a state of zeros does. `motion` and `trust`: float (1, h / s, w
    / s, 2) and (1, h / s, w / s) of `core.motion.Motion` where the mean follows motion; a reset ignores them. `probs`:
    (1, K, h / s, w / s), the prediction of a method without memory. In other methods the mean is the first state.
    `image` is the network's normalised input. `inner` is its logits, if it runs once a frame. A calibrated method with
    a familiarity head outputs `FAMILIARITY_OUTPUTS` as `familiarity` and all of `NETWORK_OUTPUTS` as `inner`. Its state
    before the last is the score's mean and mass. The last state is the structure of the frame, by which a scene cut is
    found: a cut starts anew as a reset does. With `mask_inputs` every dropout mask is an input instead of a random
    draw, for proofs.
    """

    reference: Tensor
    costs: Tensor

    def __init__(
        self,
        segmenter: StreamingSegmenter,
        height: int,
        width: int,
        *,
        mask_inputs: bool = False,
        reference: ReferenceScores | None = None,
    ) -> None:
        super().__init__()
        segmenter.fixed_size = (height, width)
        watches = reference is not None and segmenter.method.calibrated
        self.watched = segmenter.predictor if watches and isinstance(segmenter.predictor, WatchedPredictor) else None
        self.register_buffer("reference", torch.tensor(reference.scores if reference else ()), persistent=False)
        self.expected = reference.expected if reference else None
        costs = torch.tensor(self.expected.costs if self.expected else (), dtype=torch.float32)
        self.register_buffer("costs", costs, persistent=False)
        self.most = reference.max if reference else 0.0
        self.segmenter, self.mask_inputs = segmenter.eval(), mask_inputs
        self.dropouts = drawing_dropouts(segmenter)
        self.follows = segmenter.smoothing is not None and segmenter.smoothing.motion
        self.returns_probs = segmenter.smoothing is None

    def forward(self, frame: Tensor, gap: Tensor, reset: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        motion = Motion(cast(Any, rest[0]), cast(Any, rest[1])) if self.follows else None  # tensors: `warp` takes both
        rest = rest[2:] if self.follows else rest
        fields = len(State._fields) if self.segmenter.smoothing else 0
        score_fields = 1 if fields and self.watched else 0
        masks = rest[fields + score_fields + (1 if fields else 0) :]
        state, seen = None, None
        if fields:
            seen = self._structure(frame)
            is_far = distance(rest[fields + score_fields], seen)[:, None] > CUT
            reset = torch.maximum(reset, (is_far & (gap <= MAX_GAP)).float())
            state = forget(State(*rest[:fields]), reset)
        inner: list[Tensor] = []
        frame_scores: list[FrameScores | None] = []

        def predict(image: Tensor) -> Prediction:
            network, now = self._predict(image, masks)
            inner.extend((image, *network))
            frame_scores.append(now.scores)
            return now

        outputs, after = self.segmenter(frame, state, gap, motion, predict)
        probs = (outputs.prediction.probs,) if self.returns_probs else ()
        states: tuple[Tensor, ...] = tuple(after or ())
        familiarity: tuple[Tensor, ...] = ()
        if self.watched and frame_scores[0]:
            before = rest[fields] * (1.0 - reset) if score_fields else torch.zeros_like(reset).expand(-1, 2)
            score_state, familiarity = self._familiarity_outputs(outputs, frame_scores[0], before, gap)
            states = (*states, score_state) if score_fields else states
        states = states if seen is None else (*states, seen)
        return (*outputs[:4], *probs, *states, *familiarity, *inner)

    def _structure(self, frame: Tensor) -> Tensor:
        """Returns the structure of a frame, as core/cuts.py computes it for other backends."""
        size = self.segmenter.size(frame.shape[1], frame.shape[2])
        return structure(thumbnail(resize(frame.permute(0, 3, 1, 2), size).float()))

    def _familiarity_outputs(
        self, outputs: Outputs, frame: FrameScores, before: Tensor, gap: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Returns the score's mean and mass, and `FAMILIARITY_OUTPUTS`, computed as in core/segmenter.py."""
        tau, finite = self.segmenter.method.tau, outputs.prediction.finite
        assert finite is not None
        score = torch.where(frame.score < self.most, frame.score, self.most)  # NaN is the most novel
        decay = torch.exp(-gap / tau) if tau else 0.0
        mean, mass = smooth_score(score[:, None], (before[:, :1], before[:, 1:]), decay)
        at_least = (self.reference >= torch.where(finite, mean, self.most)).float().sum(1, keepdim=True)
        share = familiarity_share(at_least, self.reference.shape[0])
        confidence = outputs.confidence.float().mean((1, 2))[:, None] / 255.0
        energy = (frame.energy * RARE_LEVEL).clamp_min(0.0)
        shades = F.interpolate(
            torch.where(energy < 255.0, energy, 255.0)[:, None],  # NaN is the highest
            outputs.label.shape[1:],
            mode="bilinear",
            align_corners=False,
        )
        accuracy = torch.where(finite, self._expected_accuracy(confidence, mean, outputs.label), confidence)
        after = torch.cat([torch.where(finite, mean, before[:, :1]), torch.where(finite, mass, mass - 1.0)], 1)
        return after, (share, accuracy, shades[:, 0].to(torch.uint8))

    def _expected_accuracy(self, confidence: Tensor, score: Tensor, label: Tensor) -> Tensor:
        """Expected accuracies (B, 1), computed as in core/expected.py; without a fit the confidence."""
        if self.expected is None:
            return confidence
        rows, small = label.shape[1], label[:, ::STRIDE, ::STRIDE].long()
        bands = torch.arange(0, rows, STRIDE, device=label.device) * QUARTERS // rows
        costs = self.costs.flatten()[bands[:, None] * self.costs.shape[1] + small]
        unusual = (costs.mean((1, 2))[:, None] - self.expected.layout_mean) / self.expected.layout_deviation
        sure = confidence.clamp(1 - SURE, SURE)
        z = self.expected.level + self.expected.confidence * torch.log(sure / (1 - sure))
        z = z - self.expected.score * F.softplus(score - 1) - self.expected.layout * F.softplus(unusual - 1)
        return torch.sigmoid(z)

    def signature(self, frame_height: int, frame_width: int, fixed_size: bool = True) -> Signature:
        """Returns names, and example inputs for frames of H x W: black pictures and the state before the first frame.

        `fixed_size`: the graph takes frames of that size alone.
        """
        frame = torch.zeros(1, frame_height, frame_width, 3, dtype=torch.uint8)
        with torch.no_grad(), dropout_calls(self.dropouts) as calls:
            network, now = self._predict(self.segmenter.preprocess(frame), ())
        smoothing = self.segmenter.smoothing
        state = tuple(smoothing.start(now)) if smoothing else ()
        state = (*state, torch.zeros(1, 2)) if state and self.watched else state
        state = (*state, torch.zeros_like(self._structure(frame))) if state else state
        masks = [torch.ones(shape) for _, shape in calls] if self.mask_inputs else []
        rates = {f"mask_{i:03}": self.dropouts[i % len(self.dropouts)].rate for i in range(len(masks))}
        states = [f"state_{i:02}" for i in range(len(state))]
        still = no_motion((state[2].shape[-2], state[2].shape[-1])) if self.follows else None
        motion = (still.source, still.trust) if still else ()
        moved = [torch.as_tensor(one)[None] for one in motion]
        carried = [*(["probs"] if self.returns_probs else []), *(f"{name}_out" for name in states)]
        inner = ("image", *NETWORK_OUTPUTS[: len(network)])
        familiarity = FAMILIARITY_OUTPUTS if self.watched else ()
        names = ("frame", "gap", "reset", *MOTION_INPUTS[: len(moved)], *(f"{name}_in" for name in states), *rates)
        return Signature(
            names,
            ("label", "confidence", "entropy", "disagreement", *carried, *familiarity, *inner),
            (frame, torch.ones(1, 1), torch.zeros(1, 1), *moved, *state, *masks),
            inner,
            free_sizes={} if fixed_size else {"frame": {1: "height", 2: "width"}},
            mask_rates=rates,
        )

    def _predict(self, image: Tensor, masks: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], Prediction]:
        """Returns (`NETWORK_OUTPUTS` of a single pass, or () for several passes, and the prediction). `masks`: pass by
        pass, in order of use.
        """
        for position, dropout in enumerate(self.dropouts):
            dropout.masks = list(masks[position :: len(self.dropouts)]) if masks else None
        predictor = self.segmenter.predictor
        if not isinstance(predictor, OnePass | WatchedPredictor) or self.segmenter.method.samples > 1:
            return (), predictor(image)
        if self.watched:
            logits, scores = self.watched.forward_with_scores(image)
            return (logits, *scores), self.watched.predict(logits, scores)
        logits = predictor.network(image)
        return (logits,), Prediction.from_logits(logits, predictor.temperature)


def network_signature(height: int, width: int) -> Signature:
    """Returns names and example images of the network alone: normalised images to logits, for any batch and size."""
    example = torch.randn(2, 3, height, width, generator=torch.Generator().manual_seed(0))
    sizes = {0: "batch", 2: "height", 3: "width"}
    smallest = {"height": SIZE_MULTIPLE, "width": SIZE_MULTIPLE}
    return Signature(("image",), ("logits",), (example,), free_sizes={"image": sizes}, min_sizes=smallest)
