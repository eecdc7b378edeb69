"""How near a graph of fewer bits stays to torch over a run of frames: measured always, held to bounds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from core.errors import CheckFailed
from export.run.sessions import Runner
from export.write.proof import side_by_side


@dataclass(frozen=True)
class Parity:
    """What a run gave, over all its frames."""

    frames: int
    labels_equal: float
    """Share of pixels with the same label."""
    mean_difference: float
    """Of a probability, absolute."""
    largest_difference: float
    finite: bool

    def __str__(self) -> str:
        if not self.finite:
            return (
                f"{self.frames} frames: probabilities that are not numbers (the range of the number format overflows)"
            )
        return (
            f"{self.frames} frames: labels equal in {self.labels_equal:.2%} of the pixels, "
            f"probabilities {self.mean_difference:.1e} apart on average, at most {self.largest_difference:.1e}"
        )


@dataclass(frozen=True)
class Bounds:
    """What is asked of `Parity`."""

    labels_equal: float
    mean_difference: float

    def __str__(self) -> str:
        return f"{self.labels_equal:.1%} of the labels equal, {self.mean_difference:g} of a probability on average"


def run_both(
    step: nn.Module,
    run: Runner,
    inputs: Sequence[str],
    outputs: Sequence[str],
    example: Sequence[Tensor],
    frames: Sequence[np.ndarray],
    draw: Callable[[Tensor], Tensor] | None = None,
) -> Parity:
    """Torch in float32 and the graph, as export/write/proof.side_by_side runs them."""
    probs, tally = outputs[4], ParityTotals()
    for expected, got in side_by_side(step, run, inputs, outputs, example, frames, draw):
        tally.add(got["label"] == expected["label"], got[probs], expected[probs])
    return tally.result()


def images_both(network: nn.Module, run: Runner, images: Sequence[np.ndarray]) -> Parity:
    """The same of the network alone, on normalised images (1, 3, h, w) float32."""
    tally = ParityTotals()
    for image in images:
        with torch.no_grad():
            expected = torch.softmax(network(torch.from_numpy(image)), 1).numpy()
        got = torch.softmax(torch.from_numpy(run({"image": image})["logits"]), 1).numpy()
        tally.add(got.argmax(1) == expected.argmax(1), got, expected)
    return tally.result()


@dataclass
class ParityTotals:
    """Sums over the frames of a run."""

    frames: int = 0
    equal: float = 0.0
    apart: float = 0.0
    largest: float = 0.0
    finite: bool = True

    def add(self, same: np.ndarray, got: np.ndarray, expected: np.ndarray) -> None:
        """One frame: which labels are the same, and probabilities of both sides."""
        difference = np.abs(got - expected)
        self.frames += 1
        self.equal += float(same.mean())
        self.apart += float(difference.mean())
        self.largest = max(self.largest, float(difference.max()))
        self.finite = self.finite and bool(np.isfinite(got).all())

    def result(self) -> Parity:
        count = self.frames
        return Parity(count, self.equal / count, self.apart / count, self.largest, self.finite)


def hold(parity: Parity, bounds: Bounds, precision: str) -> None:
    """CheckFailed where the run is outside the bounds."""
    within = parity.labels_equal >= bounds.labels_equal and parity.mean_difference <= bounds.mean_difference
    if not (parity.finite and within):
        raise CheckFailed(
            f"the {precision} graph is too far from torch, so no file was written: {parity} (allowed: {bounds}); "
            "export it with --precision fp32"
        )
