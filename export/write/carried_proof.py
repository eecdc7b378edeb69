"""Makes the proof that a graph file carries: torch computes the values to expect of a few frames of the street.

The frames of a run cover what a stream meets: its beginning, the next frame, dropped frames, a reset, and a scene cut
without one.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from steadyseg.core.frame import NOVELTY_OUTPUTS
from steadyseg.core.method import draws_dropout
from steadyseg.core.motion import MotionEstimator, no_motion
from steadyseg.export.file.carried_proof import DIFFERENCES, STEPS, CarriedProof, ProofPlan, ProofTurn, enlarge, sample
from steadyseg.export.file.metadata import GraphMeta, PrecisionName
from steadyseg.export.file.signature import MAPS
from steadyseg.export.run.cpu import resize_frame
from steadyseg.export.run.sessions import Arrays
from steadyseg.export.run.verify import CarriedState, Step, named
from steadyseg.export.write.proof import BOUNDS, LABELS, TOLERANCE, moments
from steadyseg.export.write.stream_run import alone
from steadyseg.export.write.traced import Traced

TURNS = (ProofTurn(0, 1, 1), ProofTurn(1, 1, 0), ProofTurn(2, 3, 0), ProofTurn(0, 1, 1), ProofTurn(3, 1, 0))
"""The last picture is the third one's negative, whose structure is the opposite: a scene cut. The reset comes before
it, within a scene, so that a cut does not hide a reset that is ignored."""
PICTURES = (0, 1, 4)
"""Frames of the street that are stored before the negative: the gaps between them are those of the turns."""
DRAWN_TURNS = 3
"""Turns of a file that draws dropout masks: a cut would start the mean anew, which then has a single draw."""
DRAWS = 64
MAX_PIXELS, MAP_VALUES, PROBABILITY_VALUES = 12_000, 8192, 4096
"""Stored pixels of a picture, and values of a map and of the probabilities: with base64 a proof has 0.6 MB."""
MOTION_BLOCK = 8
UNBOUNDED = 1.0


def bounds_of(precision: PrecisionName) -> tuple[dict[str, float], dict[str, float]]:
    """Returns the bounds of a file in this number format, and those of devices that compute in fewer bits.

    Those of random draws leave room: 24 runs of `street-tiny` (vq-bnn) gave a mean z2 of 0.97 to 1.09, and a total
    variance at most 4.5 % apart; bf16 shifts the means, to a z2 of 1.4.
    """
    values = (LABELS, TOLERANCE, TOLERANCE, 0.1, 0.01, 2.0, 0.25)
    reduced = (0.99, 5e-3, UNBOUNDED, 1.0, 0.1, 6.0, 0.25)
    if precision != "fp32":
        own = BOUNDS[precision]
        values = (own.labels_equal, own.mean_difference, UNBOUNDED, 255 * own.mean_difference, UNBOUNDED, 6.0, 0.25)
    bounds = dict(zip(DIFFERENCES, values, strict=True))
    return bounds, bounds if precision == "int8" else dict(zip(DIFFERENCES, reduced, strict=True))


def step_of(values: int, stored: int) -> int:
    """Returns the smallest odd n of which every n-th value is at most `stored` values."""
    return -(-values // stored) // 2 * 2 + 1


def make_proof(
    traced: Traced, meta: GraphMeta, frames: Sequence[np.ndarray], record: Mapping[str, Any]
) -> CarriedProof:
    """Computes the proof of a stream by its torch module; `frames`: (H, W, 3) uint8 in order, of which `PICTURES` are
    stored."""
    is_drawn = draws_dropout(meta.method.mode)
    turns = TURNS[:DRAWN_TURNS] if is_drawn else TURNS
    limits, reduced = bounds_of(meta.precision)
    map_step = step_of(meta.height * meta.width, MAP_VALUES)
    probability_step = step_of(len(meta.classes) * math.prod(meta.state_size), PROBABILITY_VALUES)
    block = math.ceil(math.sqrt(meta.height * meta.width / MAX_PIXELS))
    draws = DRAWS if is_drawn else 0
    plan = ProofPlan(turns, draws, block, MOTION_BLOCK, map_step, probability_step, limits, reduced)
    size = -(-meta.height // block), -(-meta.width // block)
    pictures = [resize_frame(frames[number], size)[0] for number in PICTURES]
    stored = [*pictures, 255 - pictures[-1]][: 1 + max(turn.frame for turn in turns)]
    arrays = {"frame": np.stack(stored)} | (moved(plan, stored, meta) if meta.method.motion else {})
    proof, step = CarriedProof(plan, arrays, record), torch_step(traced)
    inputs = [proof.inputs(number, meta) for number in range(len(turns))]
    values = drawn_values(proof, step, inputs) if is_drawn else expected_values(proof, step, inputs)
    return CarriedProof(plan, arrays | values, record)


def torch_step(traced: Traced) -> Step:
    """Returns the module as a step of one stream."""
    signature = traced.signature
    example = {name: value[:1] for name, value in zip(signature.inputs, signature.example, strict=True)}

    def run(arrays: Arrays) -> Arrays:
        return alone(traced.module, signature, {name: torch.from_numpy(value) for name, value in arrays.items()})

    return CarriedState(run, {name: value.numpy() for name, value in example.items() if name.startswith("state_")})


def moved(plan: ProofPlan, stored: Sequence[np.ndarray], meta: GraphMeta) -> Arrays:
    """Returns stored motion and trust: those of every block's first pixel, in the frames as the proof gives them."""
    estimate, block = MotionEstimator(), plan.motion_block
    found: dict[str, list[np.ndarray]] = {"motion": [], "trust": []}
    for turn in plan.turns:
        frame = np.ascontiguousarray(enlarge(stored[turn.frame], plan.block, (meta.height, meta.width)))
        motion = estimate(frame, meta.state_size, 0 if turn.reset else turn.gap) or no_motion(meta.state_size)
        apart = motion.source - no_motion(meta.state_size).source
        limit = np.iinfo(np.int16).max
        found["motion"].append(np.rint(apart[::block, ::block] * STEPS).clip(-limit, limit).astype(np.int16))
        found["trust"].append(np.rint(motion.trust[::block, ::block] * 255).astype(np.uint8))
    return {name: np.stack(values) for name, values in found.items()}


def expected_values(proof: CarriedProof, step: Step, inputs: Sequence[Arrays]) -> Arrays:
    """Returns the values to expect, a row for each turn."""
    outputs = [named(step(one)) for one in inputs]
    names = [name for name in (*MAPS, "probability", *NOVELTY_OUTPUTS) if name in outputs[0]]
    return {name: np.stack([sample(one[name], proof.step(name)) for one in outputs]) for name in names}


def drawn_values(proof: CarriedProof, step: Step, inputs: Sequence[Arrays]) -> Arrays:
    """Returns mean and variance of the last turn's probabilities over draws of the dropout masks."""
    drawn = []
    for _ in range(proof.plan.draws):
        outputs = [step(one) for one in inputs]
        drawn.append(sample(named(outputs[-1])["probability"], proof.step("probability")))
    mean, variance = moments(drawn)
    return {"probability": mean[None].astype(np.float32), "probability_variance": variance[None].astype(np.float32)}
