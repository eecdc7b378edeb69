"""Proofs that a graph computes what its torch module computes.

Both sides run on equal inputs, which gives pairs of named arrays, (torch's, the graph's), and a proof compares the
pairs. In fp32 the outputs must be equal up to rounding; in fewer bits `Parity` measures the difference and bounds it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from steadyseg.core.errors import CheckFailed
from steadyseg.export.file.sessions import Arrays, Runner

Pairs = Iterator[tuple[Arrays, Arrays]]
TOLERANCE = 1e-4
"""Largest difference of a probability, with equal dropout masks on both sides. Rounding alone makes 2e-6
(`street-tiny`) to 3e-5 (an early `camvid-mobile`), with masks and without."""
LABELS = 0.999
"""Smallest share of equal labels: near-ties of two classes may fall either way by rounding."""
DRAWS = 32
MOMENT_TOLERANCE = 0.15
"""Allowed relative difference of the total variance; a rate of 0.25 instead of 0.2 gives 0.33."""


@dataclass(frozen=True)
class Bounds:
    """The bounds that `Parity` must keep."""

    labels_equal: float
    mean_difference: float

    def __str__(self) -> str:
        return f"{self.labels_equal:.1%} of the labels equal, {self.mean_difference:g} of a probability on average"


BOUNDS = {"fp32": Bounds(0.999, 1e-5), "fp16": Bounds(0.995, 1e-3)}
"""By number format. The fp32 bounds are for networks with ties alone; all other networks must keep `TOLERANCE`
everywhere."""


@dataclass(frozen=True)
class StreamProof:
    """The differences of a graph with a temporal state over a run of frames."""

    frames: int
    labels_equal: float
    """Share of pixels with equal labels, in the frame where it is lowest."""
    largest_probability_difference: float
    largest_map_difference: int
    """Levels of 255 in confidence, entropy and disagreement."""

    def __str__(self) -> str:
        return (
            f"{self.frames} frames with gaps and resets: labels equal in {self.labels_equal:.4%} of the pixels or "
            f"more, probabilities at most {self.largest_probability_difference:.1e} apart, maps at most "
            f"{self.largest_map_difference} of 255"
        )


@dataclass(frozen=True)
class ValueProof:
    """The largest difference of a value between a graph without state and its module."""

    compared: str
    """Inputs and values of the comparison."""
    largest_difference: float

    def __str__(self) -> str:
        return f"{self.compared} at most {self.largest_difference:.1e} apart"


@dataclass(frozen=True)
class RandomProof:
    """Comparison of mean and variance over dropout draws between the graph and torch."""

    draws: int
    mean_z2: float
    """Mean over pixels and classes of the squared difference of means over its variance: 1 when equal."""
    variance_ratio: float
    """Total variance of the graph's draws over the total variance of torch's."""

    def __str__(self) -> str:
        return (
            f"{self.draws} random draws each: squared z of the means {self.mean_z2:.2f} (1 when equal), "
            f"variance ratio {self.variance_ratio:.3f}"
        )


@dataclass(frozen=True)
class Parity:
    """The differences of a graph in fewer bits to torch in fp32, over all frames of a run."""

    frames: int
    labels_equal: float
    """Share of pixels with equal labels."""
    mean_difference: float
    """Mean absolute difference of a probability."""
    largest_difference: float
    finite: bool

    def __str__(self) -> str:
        if not self.finite:
            return f"{self.frames} frames: probabilities that are not numbers (beyond the number format's range)"
        return (
            f"{self.frames} frames: labels equal in {self.labels_equal:.2%} of the pixels, "
            f"probabilities {self.mean_difference:.1e} apart on average, at most {self.largest_difference:.1e}"
        )


def network_pairs(network: nn.Module, run: Runner, images: Iterable[np.ndarray]) -> Pairs:
    """Yields the pair of each normalised image (N, 3, h, w) float32: `probs` (N, K, h / s, w / s) and `label`."""
    for image in images:
        with torch.no_grad():
            sides = network(torch.from_numpy(image)), torch.from_numpy(run({"image": image})["logits"])
        expected, got = (torch.softmax(logits, 1).numpy() for logits in sides)
        yield {"probs": expected, "label": expected.argmax(1)}, {"probs": got, "label": got.argmax(1)}


def prove_stream(pairs: Pairs, probs: str) -> StreamProof:
    """Compares labels, maps and the probabilities named `probs`; raises CheckFailed where they differ too much."""
    frames, equal, probs_apart, maps_apart = 0, 1.0, 0.0, 0
    for expected, got in pairs:
        frames += 1
        equal = min(equal, float((got["label"] == expected["label"]).mean()))
        probs_apart = max(probs_apart, largest_difference(got[probs], expected[probs]))
        probs_apart = probs_apart if has_answer(expected, got) else np.inf
        for name in ("confidence", "entropy", "disagreement"):
            maps_apart = max(maps_apart, int(np.abs(got[name].astype(int) - expected[name].astype(int)).max()))
    proof = StreamProof(frames, equal, probs_apart, maps_apart)
    if not (equal >= LABELS and probs_apart <= TOLERANCE):
        raise CheckFailed(f"the graph does not compute what torch computes: {proof}")
    return proof


def prove_network(pairs: Pairs) -> ValueProof:
    """Compares the probabilities of the network alone; raises CheckFailed where they differ too much."""
    apart = max(largest_difference(got["probs"], expected["probs"]) for expected, got in pairs)
    return require_equal(ValueProof("two sizes and batches, probabilities", apart), "")


def prove_pictures(
    expected: Callable[[Arrays], Arrays], run: Runner, batches: Iterable[Arrays], runtime: str
) -> ValueProof:
    """Compares all outputs, probabilities and uncertainties as shares of ln K, on every batch: `image` (B, s, s, 3)
    uint8, and masks. Raises CheckFailed where they differ."""
    pictures, apart = 0, 0.0
    for batch in batches:
        ours, theirs = expected(batch), run(batch)
        pictures += len(batch["image"])
        for name, values in ours.items():
            if theirs[name].shape != values.shape:
                raise CheckFailed(f"{runtime} gives {name} of shape {theirs[name].shape}, torch {values.shape}")
            apart = max(apart, largest_difference(theirs[name], values))
    compared = f"{pictures} pictures in batches of several sizes: probabilities and uncertainties"
    return require_equal(ValueProof(compared, apart), f" in {runtime}")


def require_equal(proof: ValueProof, where: str) -> ValueProof:
    """Returns the proof; raises CheckFailed where it does not hold."""
    if not proof.largest_difference <= TOLERANCE:
        raise CheckFailed(f"the graph does not compute{where} what torch computes: {proof}")
    return proof


def largest_difference(got: np.ndarray, expected: np.ndarray) -> float:
    """Returns the largest absolute difference; infinity where a value is NaN."""
    difference = float(np.abs(got - expected).max())
    return difference if np.isfinite(difference) else np.inf


def has_answer(expected: Arrays, got: Arrays) -> bool:
    """False where a side has NaN or infinity, which a stream leaves out of its states (`core.frame.UNKNOWN`)."""
    if "confidence" not in got:
        return True
    known = all(side["confidence"].any() for side in (expected, got))
    return known and bool((expected.get("logits", np.zeros(1)) < np.inf).all())


def measure_parity(pairs: Pairs, probs: str) -> Parity:
    """Measures the differences in labels and in the probabilities named `probs`."""
    equal, means, largest, finite = [], [], [], True
    for expected, got in pairs:
        difference = np.abs(got[probs] - expected[probs])
        equal.append(float((got["label"] == expected["label"]).mean()))
        means.append(float(difference.mean()))
        largest.append(float(difference.max()))
        finite = finite and bool(np.isfinite(got[probs]).all()) and has_answer(expected, got)
    return Parity(len(equal), float(np.mean(equal)), float(np.mean(means)), max(largest), finite)


def require_parity(parity: Parity, bounds: Bounds, precision: str) -> None:
    """Raises CheckFailed where the run is outside the bounds."""
    within = parity.labels_equal >= bounds.labels_equal and parity.mean_difference <= bounds.mean_difference
    if not (parity.finite and within):
        raise CheckFailed(
            f"the {precision} graph is too far from torch: {parity} (allowed: {bounds})"
            + ("" if precision == "fp32" else "; export it with --precision fp32")
        )


def compare_draws(drawn: list[np.ndarray], by_graph: list[np.ndarray]) -> RandomProof:
    """Compares the first two moments over equally many draws of torch and of the graph, all of one shape.

    Raises CheckFailed where they differ.
    """
    ours, theirs, count = moments(drawn), moments(by_graph), len(drawn)
    moving = (ours[1] + theirs[1]) > 1e-8
    z2 = (ours[0] - theirs[0])[moving] ** 2 / ((ours[1] + theirs[1])[moving] / count)
    proof = RandomProof(count, float(z2.mean()), float(theirs[1].sum() / ours[1].sum()))
    if not (proof.mean_z2 < 2.0 and abs(proof.variance_ratio - 1.0) < MOMENT_TOLERANCE):
        raise CheckFailed(f"the graph's dropout is not torch's: {proof}")
    return proof


def moments(draws: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the mean and the unbiased variance over the draws."""
    stack = np.stack(draws).astype(np.float64)
    return stack.mean(0), stack.var(0, ddof=1)
