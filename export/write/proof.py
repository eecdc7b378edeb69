"""The proof that a graph file computes what the torch module computes; without it nothing is written."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from core.errors import CheckFailed
from core.motion import MotionEstimator, no_motion
from export.run.sessions import Arrays, Runner

TOLERANCE = 1e-4
"""Largest difference of a probability, with the same dropout masks on both sides: rounding alone makes
2e-6 of `street-tiny` and 3e-5 of `camvid-mobile`, with masks and without."""
LABELS = 0.999
"""Share of pixels whose label must agree: near-ties of two classes may fall either way by rounding."""
GAP_AT, GAP, RESET_AT = 10, 3, 20
"""The run holds a gap of three source frames and a reset."""
DRAWS = 32
MOMENT_TOLERANCE = 0.15
"""Allowed relative difference of the total variance; a rate of 0.25 instead of 0.2 gives 0.33."""


@dataclass(frozen=True)
class StreamProof:
    """What was compared and how far apart it was."""

    frames: int
    labels_equal: float
    """Smallest share of equal labels in a frame."""
    largest_probability_difference: float
    largest_map_difference: int
    """Levels of 255 in confidence, entropy and disagreement."""

    def __str__(self) -> str:
        return (
            f"{self.frames} frames with a gap and a reset: labels equal in {self.labels_equal:.4%} of the pixels "
            f"or more, "
            f"probabilities at most {self.largest_probability_difference:.1e} apart, maps at most "
            f"{self.largest_map_difference} of 255"
        )


@dataclass(frozen=True)
class RandomProof:
    """First two moments over dropout draws of the graph against torch's."""

    draws: int
    mean_z2: float
    """Mean over pixels and classes of the squared difference of means over its variance: 1 when equal."""
    variance_ratio: float
    """Total variance of the graph's draws over that of torch's."""

    def __str__(self) -> str:
        return (
            f"{self.draws} random draws each: squared z of the means {self.mean_z2:.2f} (1 when equal), "
            f"variance ratio {self.variance_ratio:.3f}"
        )


def side_by_side(
    step: nn.Module,
    run: Runner,
    inputs: Sequence[str],
    outputs: Sequence[str],
    example: Sequence[Tensor],
    frames: Sequence[np.ndarray],
    draw: Callable[[Tensor], Tensor] | None = None,
) -> Iterator[tuple[Arrays, Arrays]]:
    """(torch's outputs, the graph's) of every frame, each side with its own state; a gap and a reset are in the run.

    A mean that follows motion is told that of the frames, both sides the same.

    `draw` fills a mask of the proof graph: (example mask) -> mask, the same for both sides.
    """
    ours: dict[str, Tensor] = dict(zip(inputs, example, strict=True))
    theirs: Arrays = {name: value.numpy() for name, value in ours.items()}
    estimate = MotionEstimator()
    for number, frame in enumerate(frames):
        now = {
            "frame": torch.from_numpy(frame)[None],
            "gap": torch.tensor([float(GAP if number == GAP_AT else 1)]),
            "reset": torch.tensor([float(number in (0, RESET_AT))]),
        }
        if "motion" in ours:
            size = (ours["trust"].shape[0], ours["trust"].shape[1])
            motion = estimate(frame, size, 0 if number in (0, RESET_AT) else 1) or no_motion(size)
            now |= {"motion": torch.as_tensor(motion.source), "trust": torch.as_tensor(motion.trust)}
        if draw:
            now |= {name: draw(value) for name, value in ours.items() if name.startswith("mask_")}
        ours |= now
        theirs |= {name: value.numpy() for name, value in now.items()}
        with torch.no_grad():
            expected: Arrays = {n: v.numpy() for n, v in zip(outputs, step(*ours.values()), strict=False)}
        got = run(theirs)
        yield expected, got
        for name in (name for name in inputs if name.startswith("state_")):
            carried = name.removesuffix("_in") + "_out"
            ours[name], theirs[name] = torch.from_numpy(expected[carried]), got[carried]


def prove_stream(
    step: nn.Module,
    run: Runner,
    inputs: Sequence[str],
    outputs: Sequence[str],
    example: Sequence[Tensor],
    frames: Sequence[np.ndarray],
    draw: Callable[[Tensor], Tensor] | None = None,
) -> StreamProof:
    """Runs both `side_by_side`; CheckFailed where they part. Probabilities are the output after the four maps."""
    probs = outputs[4]
    equal, probs_apart, maps_apart = 1.0, 0.0, 0
    for expected, got in side_by_side(step, run, inputs, outputs, example, frames, draw):
        equal = min(equal, float((got["label"] == expected["label"]).mean()))
        probs_apart = max(probs_apart, float(np.abs(got[probs] - expected[probs]).max()))
        for name in ("confidence", "entropy", "disagreement"):
            maps_apart = max(maps_apart, int(np.abs(got[name].astype(int) - expected[name].astype(int)).max()))
    proof = StreamProof(len(frames), equal, probs_apart, maps_apart)
    if not (equal >= LABELS and probs_apart <= TOLERANCE):
        raise CheckFailed(f"the graph does not compute what torch computes, so no file was written: {proof}")
    return proof


def prove_random(
    step: nn.Module,
    run: Runner,
    inputs: Sequence[str],
    outputs: Sequence[str],
    example: Sequence[Tensor],
    frame: np.ndarray,
) -> RandomProof:
    """Mean and variance over draws on one frame, each draw with a reset; CheckFailed where they are not torch's."""
    tensors = dict(zip(inputs, example, strict=True))
    tensors |= {"frame": torch.from_numpy(frame)[None], "reset": torch.ones(1)}
    arrays = {name: value.numpy() for name, value in tensors.items()}
    probs_name = outputs[4]
    with torch.no_grad():
        position = list(outputs).index(probs_name)
        ours = [step(*tensors.values())[position].numpy() for _ in range(DRAWS)]
    return compare_draws(ours, [run(arrays)[probs_name] for _ in range(DRAWS)])


def compare_draws(drawn: list[np.ndarray], by_graph: list[np.ndarray]) -> RandomProof:
    """The first two moments over as many draws of torch as of the graph, of one shape; CheckFailed where they part."""
    ours, theirs, count = moments(drawn), moments(by_graph), len(drawn)
    moving = (ours[1] + theirs[1]) > 1e-8
    z2 = (ours[0] - theirs[0])[moving] ** 2 / ((ours[1] + theirs[1])[moving] / count)
    proof = RandomProof(count, float(z2.mean()), float(theirs[1].sum() / ours[1].sum()))
    if not (proof.mean_z2 < 2.0 and abs(proof.variance_ratio - 1.0) < MOMENT_TOLERANCE):
        raise CheckFailed(f"the graph's dropout is not torch's, so no file was written: {proof}")
    return proof


def moments(draws: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and unbiased variance over the draws."""
    stack = np.stack(draws).astype(np.float64)
    return stack.mean(0), stack.var(0, ddof=1)
