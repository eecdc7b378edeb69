"""The run of a graph file's proof on a device: outputs beside the outputs to expect, and the speed."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from steadyseg.core.frame import FAMILIARITY_OUTPUTS
from steadyseg.core.motion import Motion
from steadyseg.export.file.metadata import GraphMeta
from steadyseg.export.file.signature import MAPS, state_names
from steadyseg.export.run.carried_proof import DIFFERENCES, CarriedProof
from steadyseg.export.run.graph import GraphStream
from steadyseg.export.run.sessions import Arrays, Runner

Step = Callable[[Arrays], Arrays]
"""Computes the next frame of a stream, and carries the states from call to call."""
MIN_CALLS, MAX_CALLS, SECONDS = 3, 50, 1.0


class CarriedState:
    """A `Step` of a function without memory: it keeps the states that the function returns."""

    def __init__(self, run: Runner, zeros: Arrays) -> None:
        self._run, self._states = run, dict(zeros)

    def __call__(self, inputs: Arrays) -> Arrays:
        outputs = self._run(inputs | self._states)
        self._states = {name: outputs[name.removesuffix("_in") + "_out"] for name in self._states}
        return outputs


def graph_step(stream: GraphStream) -> Step:
    """Returns a `Step` that computes frames by `GraphStream`, in ONNX Runtime."""

    def step(inputs: Arrays) -> Arrays:
        gap = int((inputs["gap"] * (1 - inputs["reset"])).item())  # 0 is a reset
        motion = Motion(inputs["motion"][0], inputs["trust"][0]) if "motion" in inputs else None
        return stream(inputs["frame"], gap, motion, keep_probs=True)

    return step


@dataclass(frozen=True)
class Verified:
    """The differences that were found, by the names of `DIFFERENCES`, and the speed."""

    found: Mapping[str, float]
    bounds: Mapping[str, float]
    frame_ms: float
    """Median time of a call, inputs and outputs included."""

    @property
    def holds(self) -> bool:
        """True if every difference is within its bound; NaN is not."""
        return all(
            value >= self.bounds[name] if name == "labels_equal" else value <= self.bounds[name]
            for name, value in self.found.items()
        )

    def __str__(self) -> str:
        return ", ".join(DIFFERENCES[name].format(value, self.bounds[name]) for name, value in self.found.items())


def verify(proof: CarriedProof, meta: GraphMeta, step: Step, *, reduced: bool = False) -> Verified:
    """Runs the proof, and times a call.

    `reduced`: apply the bounds of devices that compute in fewer bits than the file has.
    """
    turns = [proof.inputs(number, meta) for number in range(len(proof.plan.turns))]
    if proof.plan.draws:
        arrays = proof.arrays["probability"][0], proof.arrays["probability_variance"][0]
        found = moments_apart(drawn(proof, step, turns), *arrays, proof.plan.draws)
    else:
        found = values_apart(proof, sampled(proof, step, turns))
    bounds = proof.plan.reduced_bounds if reduced else proof.plan.bounds
    return Verified(found, bounds, call_ms(step, turns[-1]))


def sampled(proof: CarriedProof, step: Step, turns: Sequence[Arrays]) -> Arrays:
    """Returns the stored values of every output, (turns, values) by name."""
    rows: list[Arrays] = []
    for inputs in turns:
        outputs = named(step(inputs))
        names = [name for name in (*MAPS, "probability", *FAMILIARITY_OUTPUTS) if name in outputs]
        rows.append({name: outputs[name].reshape(-1)[:: proof.step(name)] for name in names})
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def drawn(proof: CarriedProof, step: Step, turns: Sequence[Arrays]) -> np.ndarray:
    """Returns the last turn's probabilities over draws of the dropout masks, (draws, values)."""
    found: list[np.ndarray] = []
    for _ in range(proof.plan.draws):
        for inputs in turns:
            outputs = step(inputs)
        found.append(named(outputs)["probability"].reshape(-1)[:: proof.step("probability")])
    return np.stack(found)


def values_apart(proof: CarriedProof, found: Arrays) -> dict[str, float]:
    """Compares labels, probabilities, maps and familiarity of `sampled`."""
    apart = {name: np.abs(got.astype(np.float64) - proof.arrays[name]) for name, got in found.items()}
    told = [apart[name].max() for name in FAMILIARITY_OUTPUTS[:2] if name in apart]
    levels = [apart[name].mean() for name in (*MAPS[1:], FAMILIARITY_OUTPUTS[2]) if name in apart]
    differences = {
        "labels_equal": float((apart["label"] == 0).mean()),
        "probability_mean": float(apart["probability"].mean()),
        "probability_max": float(apart["probability"].max()),  # keeps NaN
        "map_levels_mean": float(max(levels)),
    }
    return differences | ({"familiarity_max": float(max(told))} if told else {})


def moments_apart(drawn: np.ndarray, mean: np.ndarray, variance: np.ndarray, draws: int) -> dict[str, float]:
    """Compares draws (N, values) with mean and variance of other `draws`, leaving out values that do not vary."""
    values = drawn.astype(np.float64)
    ours, spread = values.mean(0), values.var(0, ddof=1)
    moving = spread + variance > 1e-8
    z2 = (ours - mean)[moving] ** 2 / (spread / len(values) + variance / draws)[moving]
    return {
        "mean_z2": float(z2.mean()) if moving.any() else np.nan,
        "variance_difference": abs(float(spread.sum() / variance.sum()) - 1.0),
    }


def named(outputs: Arrays) -> Arrays:
    """Returns the outputs, with the probabilities also under their name in a proof, `probability`."""
    return outputs | {"probability": outputs["probs" if "probs" in outputs else state_names(1, "out")[0]]}


def call_ms(step: Step, inputs: Arrays) -> float:
    """Returns the median time of a call in milliseconds."""
    times: list[float] = []
    while len(times) < MIN_CALLS or (sum(times) < SECONDS and len(times) < MAX_CALLS):
        started = time.perf_counter()
        step(inputs)
        times.append(time.perf_counter() - started)
    return 1e3 * median(times)
