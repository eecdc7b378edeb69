"""A prediction as two statistics that average linearly: the mean probabilities and the mean entropy of the members."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from steadyseg.core.frame import FrameScores
from steadyseg.core.tracing import is_exporting

FINITE = 1e9
"""Above every entropy; a comparison with it is false for NaN, and graphs with infinities are refused."""


def entropy(probs: Tensor) -> Tensor:
    """Shannon entropy in nats over dimension 1: (B, K, ...) -> (B, ...); 0 log 0 = 0."""
    if is_exporting():  # entr becomes a dozen graph nodes for cases that probabilities do not have
        return -(probs * probs.clamp_min(1e-30).log()).sum(dim=1)
    return torch.special.entr(probs).sum(dim=1)


@dataclass(frozen=True, eq=False)
class Prediction:
    """A mixture of categorical predictions (dropout masks, frames, ensemble members, or all at once).

    Total uncertainty H[mean p] = expected entropy mean H[p] + disagreement, and disagreement is never negative
    (Jensen).
    """

    probs: Tensor
    """(B, K, ...) mean probabilities; they sum to 1 over dimension 1."""
    member_entropy: Tensor
    """(B, ...) mean entropy of the members in nats."""
    scores: FrameScores | None = None
    """Familiarity of this frame alone, averaged over its passes; a mean over frames has none."""
    finite: Tensor | None = None
    """(B, 1) bool: False where the network's own prediction was NaN, so `probs` are a guess. None if not checked."""

    def __post_init__(self) -> None:
        expected = self.probs.shape[:1] + self.probs.shape[2:]
        if self.probs.ndim < 2 or self.member_entropy.shape != expected:
            raise ValueError(f"member_entropy must be {tuple(expected)}, got {tuple(self.member_entropy.shape)}")

    @classmethod
    def from_logits(cls, logits: Tensor, temperature: float | Tensor = 1.0) -> "Prediction":
        """One member: logits (B, K, ...) / temperature -> softmax over dimension 1; a tensor broadcasts."""
        if logits.dtype in (torch.float16, torch.bfloat16):  # 8 bits of mantissa are too few for probabilities
            logits = logits.float()
        tempered = logits if isinstance(temperature, float) and temperature == 1.0 else logits / temperature
        probs = torch.softmax(tempered, dim=1)
        return cls(probs, entropy(probs))

    def blend(self, other: "Prediction", weight: float | Tensor) -> "Prediction":
        """The mixture (1 - weight) * self + weight * other, weight in 0..1."""
        return Prediction(
            self.probs + (other.probs - self.probs) * weight,
            self.member_entropy + (other.member_entropy - self.member_entropy) * weight,
            self.scores.blend(other.scores, weight) if self.scores and other.scores else None,
        )

    def is_finite(self) -> Tensor:
        """(B, 1) bool: False for a picture with a NaN. Only its entropies are read, a K-th of the values."""
        return (self.member_entropy[..., None] < FINITE).float().flatten(1).amin(1, keepdim=True) > 0

    def or_uniform(self) -> "Prediction":
        """The prediction with `finite`, and equal probabilities for each picture that is not finite."""
        finite = self.is_finite()
        inner = finite.reshape(-1, *[1] * (self.member_entropy.ndim - 1))
        return Prediction(
            torch.where(inner[:, None], self.probs, 1.0 / self.probs.shape[1]),
            torch.where(inner, self.member_entropy, self.max_entropy),
            self.scores,
            finite,
        )

    @property
    def labels(self) -> Tensor:
        """(B, ...) arg-max class ids."""
        return self.probs.argmax(dim=1)

    @property
    def confidence(self) -> Tensor:
        """(B, ...) largest mean probability, 1/K..1."""
        return self.probs.amax(dim=1)

    @property
    def entropy(self) -> Tensor:
        """(B, ...) total uncertainty H[mean p] in nats, 0..ln K."""
        return entropy(self.probs)

    @property
    def disagreement(self) -> Tensor:
        """(B, ...) H[mean p] - mean H[p] in nats; rounding below zero is clamped."""
        return (self.entropy - self.member_entropy).clamp_min(0.0)

    @property
    def max_entropy(self) -> float:
        """ln K, the entropy of the uniform prediction."""
        return math.log(self.probs.shape[1])


def mean_prediction(members: list[Prediction]) -> Prediction:
    """The equally weighted mixture of N members; raises ValueError without members."""
    if not members:
        raise ValueError("a mean needs at least one prediction, got none")
    probs = torch.stack([member.probs for member in members]).mean(0)
    return Prediction(probs, torch.stack([member.member_entropy for member in members]).mean(0))
