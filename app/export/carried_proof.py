"""The proof in an exported file: a few frames of the procedural street, and the values that torch computes for them.

The frames cover the events of a stream: its beginning, the next frame, dropped frames, a reset, and a scene cut without
a reset. The record beside them has the calibration of the method and its measured metrics.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from steadyseg.app.console import Console
from steadyseg.app.export.segmenter import proof_frames, torch_runner
from steadyseg.core.errors import CheckFailed
from steadyseg.core.method import SETTINGS, Method, draws_dropout
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.model.model import Model
from steadyseg.core.motion import MotionEstimator, no_motion
from steadyseg.export.file.metadata import GraphMeta, PrecisionName
from steadyseg.export.kernels.resize import resize_frame
from steadyseg.export.run.carried_proof import DIFFERENCES, STEPS, CarriedProof, ProofPlan, ProofTurn, enlarge
from steadyseg.export.run.graph import GraphStream
from steadyseg.export.run.proof_run import CarriedState, Step, drawn, graph_step, sampled, verify
from steadyseg.export.run.sessions import Arrays
from steadyseg.export.write.proof import BOUNDS, LABELS, TOLERANCE, moments
from steadyseg.export.write.traced import Traced

KEYS = set(
    (
        "data split protocol frames images temperature nll_before nll_after ece_before ece_after accuracy miou nll ece "
        "conformal coverage_asked coverage lac class_risk class level threshold risk"
    ).split()
)
"""Keys of a record that are kept, at every depth."""
TURNS = (ProofTurn(0, 1, 1), ProofTurn(1, 1, 0), ProofTurn(2, 3, 0), ProofTurn(0, 1, 1), ProofTurn(3, 1, 0))
"""The last picture is the third one's negative, whose structure is the opposite: a scene cut. The reset comes earlier,
within a scene, so that the cut does not hide an ignored reset."""
PICTURES = (0, 1, 4)
"""Stored frames of the street before the negative; the turns have the same gaps between frames."""
DRAWN_TURNS = 3
"""Turns of a file that draws dropout masks: a cut would reset the mean, which would then have a single draw."""
DRAWS = 64
MAX_PIXELS, MAP_VALUES, PROBABILITY_VALUES = 12_000, 8192, 4096
"""Stored pixels of a picture, and values of a map and of the probabilities: with base64 a proof has 0.6 MB."""
MOTION_BLOCK = 8
UNBOUNDED = 1.0


def proof_entries(model: Model, traced: Traced, meta: GraphMeta, console: Console) -> dict[str, str]:
    """Returns the entries of metadata; CheckFailed if the graph fails its own proof on this CPU."""
    torch.manual_seed(0)
    proof = make_proof(traced, meta, proof_frames(), record_of(model.meta, meta.method))
    step = graph_step(GraphStream(traced.model(meta).SerializeToString(), meta, "cpu"))
    verified = verify(proof, meta, step)
    if not verified.holds:
        raise CheckFailed(f"the graph fails the proof that it would carry, so no file was written: {verified}")
    console.print(f"carries a proof, and passes it here: {verified}", soft_wrap=True)
    return proof.to_props()


def record_of(meta: CheckpointMeta, method: Method) -> dict[str, Any]:
    """Returns the calibration in use (`fit`) and the metrics of exactly this method (`measured`), without the lists of
    single images and classes."""
    measured = [chosen(figures) for figures in meta.metrics.values() if is_of(figures, method)]
    return {"fit": chosen(meta.fit_in_use(method)), "measured": measured}


def is_of(figures: Any, method: Method) -> bool:
    """True for metrics of this method and temperature."""
    if not isinstance(figures, Mapping) or figures.get("temperature") != method.temperature:
        return False
    return all(figures.get(name) == getattr(method, name) for name in SETTINGS)


def chosen(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the entries of `KEYS` that have a value, to four digits."""
    return {key: short(value) for key, value in record.items() if key in KEYS and value is not None}


def short(value: Any) -> Any:
    if isinstance(value, Mapping):
        return chosen(value)
    return float(f"{value:.4g}") if isinstance(value, float) else value


def bounds_of(precision: PrecisionName) -> tuple[dict[str, float], dict[str, float]]:
    """Returns the bounds of a file in this number format, and the bounds of devices that compute in fewer bits.

    The bounds of random draws leave room. In 24 runs of `street-tiny` (vq-bnn) the mean z2 was 0.97 to 1.09, and total
    variances differed by at most 4.5 %. With bf16 the means shift: z2 is then 1.4.
    """
    values = (LABELS, TOLERANCE, TOLERANCE, 0.1, 0.01, 2.0, 0.25)
    reduced = (0.99, 5e-3, UNBOUNDED, 1.0, 0.1, 6.0, 0.25)
    if precision != "fp32":
        own = BOUNDS[precision]
        values = (own.labels_equal, own.mean_difference, UNBOUNDED, 255 * own.mean_difference, UNBOUNDED, 6.0, 0.25)
    bounds = dict(zip(DIFFERENCES, values, strict=True))
    return bounds, dict(zip(DIFFERENCES, reduced, strict=True))


def step_of(values: int, stored: int) -> int:
    """Returns the smallest odd n for which every n-th value makes at most `stored` values."""
    return -(-values // stored) // 2 * 2 + 1


def make_proof(
    traced: Traced, meta: GraphMeta, frames: Sequence[np.ndarray], record: Mapping[str, Any]
) -> CarriedProof:
    """Computes the proof of a stream by its torch module. `frames`: (H, W, 3) uint8, in order; those at `PICTURES` are
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
    example = zip(traced.signature.inputs, traced.signature.example, strict=True)
    zeros = {name: value.numpy() for name, value in example if name.startswith("state_")}
    proof, step = CarriedProof(plan, arrays, record), CarriedState(torch_runner(traced), zeros)
    inputs = [proof.inputs(number, meta) for number in range(len(turns))]
    return CarriedProof(plan, arrays | expected_values(proof, step, inputs), record)


def moved(plan: ProofPlan, stored: Sequence[np.ndarray], meta: GraphMeta) -> Arrays:
    """Returns stored motion and trust: the values of every block's first pixel, in the proof's own frames."""
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
    """Returns the values to expect: a row for each turn, or mean and variance where dropout masks are drawn."""
    if not proof.plan.draws:
        return sampled(proof, step, inputs)
    mean, variance = moments(list(drawn(proof, step, inputs)))
    return {"probability": mean[None].astype(np.float32), "probability_variance": variance[None].astype(np.float32)}
