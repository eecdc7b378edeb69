"""The proof in a graph file's metadata, and its run on a device: frames, outputs to expect, and largest differences.

docs/reference/files.md describes the entries for programs in other languages. So the entries are plain: JSON, and
base64 of little-endian numbers. Pictures are stored small, each pixel a block of the frame. Every n-th expected value
is stored; n is odd, so that all columns of a vector unit are sampled.
"""

import base64
import binascii
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from steadyseg.core.errors import InputError, shorten
from steadyseg.core.frame import FAMILIARITY_OUTPUTS
from steadyseg.core.motion import Motion
from steadyseg.core.options import is_number, is_whole
from steadyseg.core.system.json_text import parse_json
from steadyseg.export.file.metadata import MAX_CHARACTERS, REMEDY, GraphMeta
from steadyseg.export.file.signature import MAPS, state_names
from steadyseg.export.run.graph import GraphStreams
from steadyseg.export.run.sessions import Arrays, Runner

PROOF_KEY, RECORD_KEY = "proof", "record"
VERSION = 1
TYPES = dict.fromkeys(("frame", "trust", *MAPS, FAMILIARITY_OUTPUTS[2]), "u1")
TYPES |= dict.fromkeys(("probability", "probability_variance", *FAMILIARITY_OUTPUTS[:2]), "<f4") | {"motion": "<i2"}
"""Number formats of the stored arrays, by name; the key of an entry is `proof_NAME`."""
STEPS = 32
"""Stored motion is in this fraction of a pixel."""
MAX_TURNS, MAX_DRAWS = 100, 1000
DIFFERENCES = {
    "labels_equal": "labels equal in {:.4%} (at least {:.1%})",
    "probability_mean": "probabilities {:.1e} apart on average (at most {:g})",
    "probability_max": "and {:.1e} at most ({:g})",
    "map_levels_mean": "maps {:.4f} of 255 levels apart on average (at most {:g})",
    "familiarity_max": "familiarity {:.4f} apart (at most {:g})",
    "mean_z2": "random draws: squared z of the means {:.2f} (1 where equal, at most {:g})",
    "variance_difference": "variance {:.1%} apart (at most {:.0%})",
}
"""Texts for a compared difference and its bound, by name."""


class ProofTurn(NamedTuple):
    """One call of the proof: its inputs besides motion, and besides states, which the previous call returned."""

    frame: int
    """Number of the stored picture."""
    gap: int
    reset: int


@dataclass(frozen=True)
class ProofPlan:
    """The entry `proof`: how to make the inputs and compare the outputs."""

    turns: tuple[ProofTurn, ...]
    draws: int
    """0 compares values turn by turn. Else the file draws dropout masks: the turns run this often, and the moments of
    the last turn's probabilities are compared."""
    block: int
    """Pixels of the frame that a stored pixel stands for, along each side."""
    motion_block: int
    map_step: int
    """Of a flattened map, every `map_step`-th value is stored."""
    probability_step: int
    bounds: Mapping[str, float]
    """By name of `DIFFERENCES`; for arithmetic in the number format of the file."""
    reduced_bounds: Mapping[str, float]
    """For devices that compute in fewer bits: TF32, bf16 or fp16."""


@dataclass(frozen=True, eq=False)
class CarriedProof:
    """The proof of one graph file."""

    plan: ProofPlan
    arrays: Mapping[str, np.ndarray]
    """Inputs by name: frame (F, h', w', 3), motion (T, h', w', 2) in 1/32 pixel, trust (T, h', w') in 1/255. Expected
    values by name, a row for each turn; for random draws, the mean and variance of the last turn's probabilities."""
    record: Mapping[str, Any]
    """The calibration of the method (`fit`) and the metrics that were measured with it (`measured`)."""

    def inputs(self, number: int, meta: GraphMeta) -> dict[str, np.ndarray]:
        """Returns the inputs of a turn for one stream, without the states."""
        plan, turn = self.plan, self.plan.turns[number]
        picture = enlarge(self.arrays["frame"][turn.frame], plan.block, (meta.height, meta.width))
        given = {
            "frame": np.ascontiguousarray(picture)[None],
            "gap": np.full((1, 1), turn.gap, np.float32),
            "reset": np.full((1, 1), turn.reset, np.float32),
        }
        if meta.method.motion:
            height, width = meta.state_size
            moved = enlarge(self.arrays["motion"][number], plan.motion_block, meta.state_size)
            grid = np.stack(np.meshgrid(np.arange(width), np.arange(height)), axis=-1).astype(np.float32)
            given["motion"] = (grid + moved.astype(np.float32) / np.float32(STEPS))[None]
            trust = enlarge(self.arrays["trust"][number], plan.motion_block, meta.state_size)
            given["trust"] = (trust.astype(np.float32) / np.float32(255))[None]
        return given

    def step(self, name: str) -> int:
        """Returns n where every n-th value of the output is stored."""
        if name.startswith("probability"):
            return self.plan.probability_step
        return 1 if name in FAMILIARITY_OUTPUTS[:2] else self.plan.map_step

    def to_props(self) -> dict[str, str]:
        """Returns the entries of ONNX metadata_props."""
        plan = {"version": VERSION} | {field.name: getattr(self.plan, field.name) for field in fields(ProofPlan)}
        packed = {name: np.ascontiguousarray(values, TYPES[name]).tobytes() for name, values in self.arrays.items()}
        return {
            **{f"{PROOF_KEY}_{name}": base64.b64encode(data).decode() for name, data in packed.items()},
            RECORD_KEY: json.dumps(self.record, ensure_ascii=False),
            PROOF_KEY: json.dumps(plan, allow_nan=False),
        }


def enlarge(stored: np.ndarray, block: int, size: tuple[int, int]) -> np.ndarray:
    """(h', w', ...) -> (h, w, ...): each value `block` times along both axes, cut to the size."""
    rows, columns = (np.arange(side) // block for side in size)
    return stored[rows[:, None], columns]


def sample(values: np.ndarray, step: int) -> np.ndarray:
    """Returns every `step`-th value of the flattened array."""
    return values.reshape(-1)[::step]


def read_proof(props: Mapping[str, str], meta: GraphMeta, name: str) -> CarriedProof:
    """Reads the proof of a file; InputError for a file without one, and for entries that no export writes."""
    if PROOF_KEY not in props:
        raise InputError(f"{name}: carries no proof; export it with --stateful --with-proof")
    try:
        return _parse(props, meta)
    except (KeyError, TypeError, ValueError) as error:  # InputError is a ValueError
        raise InputError(f"{name}: its proof is malformed ({error}); {REMEDY} --with-proof") from error


def _parse(props: Mapping[str, str], meta: GraphMeta) -> CarriedProof:
    texts = {key: props[key] for key in (PROOF_KEY, RECORD_KEY)}
    if any(len(text) > MAX_CHARACTERS for text in texts.values()):
        raise InputError(f"an entry has more than {MAX_CHARACTERS} characters")
    values, record = (parse_json(text) for text in texts.values())
    if not isinstance(values, dict) or values.pop("version", None) != VERSION or not isinstance(record, dict):
        raise InputError(f"it is no proof of version {VERSION}")
    plan = ProofPlan(**values | {"turns": tuple(ProofTurn(*turn) for turn in values["turns"])})
    _check_plan(plan)
    return CarriedProof(plan, _arrays(props, plan, meta), record)


def _check_plan(plan: ProofPlan) -> None:
    """Raises InputError for numbers that would read past the end, compute for ever or bound nothing."""
    blocks = [getattr(plan, key) for key in ("block", "motion_block", "map_step", "probability_step")]
    limits = (plan.bounds, plan.reduced_bounds)
    for what, holds in (
        ("turns", 1 <= len(plan.turns) <= MAX_TURNS),
        ("turns", all(is_whole(value, 0, MAX_TURNS) for turn in plan.turns for value in turn)),
        ("draws", plan.draws == 0 or is_whole(plan.draws, 2, MAX_DRAWS)),
        ("blocks and steps", all(is_whole(value, 1, 2**20) for value in blocks)),
        ("bounds", all(isinstance(one, dict) and one.keys() == DIFFERENCES.keys() for one in limits)),
        ("bounds", all(is_number(value, 0, 1e6) for one in limits for value in one.values())),
    ):
        if not holds:
            raise InputError(f"{what}: {shorten(plan)}")


def _arrays(props: Mapping[str, str], plan: ProofPlan, meta: GraphMeta) -> dict[str, np.ndarray]:
    """Returns the stored arrays; InputError for an array with another number of values than in the plan."""
    turns = len(plan.turns)
    small = [-(-side // plan.block) for side in (meta.height, meta.width)]
    moved = [-(-side // plan.motion_block) for side in meta.state_size]
    row = -(-len(meta.classes) * math.prod(meta.state_size) // plan.probability_step)
    shapes: dict[str, tuple[int, ...]] = {"frame": (1 + max(turn.frame for turn in plan.turns), *small, 3)}
    if meta.method.motion:
        shapes |= {"motion": (turns, *moved, 2), "trust": (turns, *moved)}
    if plan.draws:
        shapes |= {"probability": (1, row), "probability_variance": (1, row)}
    else:
        shapes["probability"] = (turns, row)
        told = FAMILIARITY_OUTPUTS if meta.reference_scores else ()
        shapes |= dict.fromkeys((*MAPS, *told[2:]), (turns, -(-meta.height * meta.width // plan.map_step)))
        shapes |= dict.fromkeys(told[:2], (turns, 1))
    return {name: _array(props[f"{PROOF_KEY}_{name}"], name, shape) for name, shape in shapes.items()}


def _array(text: str, name: str, shape: tuple[int, ...]) -> np.ndarray:
    try:
        values = np.frombuffer(base64.b64decode(text, validate=True), TYPES[name])
    except (binascii.Error, ValueError) as error:
        raise InputError(f"{name} is not base64 of {TYPES[name]}") from error
    if values.size != math.prod(shape) or not np.isfinite(values).all():
        raise InputError(f"{name} has {values.size} values, expected {shape}, all finite")
    return values.reshape(shape)


Step = Callable[[Arrays], Arrays]
"""Computes the next frame of every stream, and carries the states from call to call."""
MIN_CALLS, MAX_CALLS, SECONDS = 3, 50, 1.0


class CarriedState:
    """A `Step` of a function without memory: it keeps the states that the function returns."""

    def __init__(self, run: Runner, zeros: Arrays) -> None:
        self._run, self._states = run, dict(zeros)

    def __call__(self, inputs: Arrays) -> Arrays:
        outputs = self._run(inputs | self._states)
        self._states = {name: outputs[name.removesuffix("_in") + "_out"] for name in self._states}
        return outputs


def graph_step(streams: GraphStreams) -> Step:
    """Returns the `Step` of a graph file in ONNX Runtime, as `GraphStreams` runs it."""

    def step(inputs: Arrays) -> Arrays:
        gaps = (inputs["gap"] * (1 - inputs["reset"])).ravel().astype(int).tolist()  # 0 is a reset
        moved = zip(inputs["motion"], inputs["trust"], strict=True) if "motion" in inputs else [None] * len(gaps)
        return streams(inputs["frame"], gaps, [Motion(*one) if one else None for one in moved], keep_probs=True)

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


def verify(proof: CarriedProof, meta: GraphMeta, step: Step, streams: int, *, reduced: bool = False) -> Verified:
    """Runs the proof in every stream of a call, and times the call.

    `reduced`: apply the bounds of devices that compute in fewer bits than the file has.
    """
    turns = [
        {name: np.repeat(value, streams, 0) for name, value in proof.inputs(number, meta).items()}
        for number in range(len(proof.plan.turns))
    ]
    if proof.plan.draws:
        arrays = proof.arrays["probability"][0], proof.arrays["probability_variance"][0]
        found = moments_apart(drawn(proof, step, turns), *arrays, proof.plan.draws)
    else:
        found = values_apart(proof, sampled(proof, step, turns))
    bounds = proof.plan.reduced_bounds if reduced else proof.plan.bounds
    return Verified(found, bounds, call_ms(step, turns[-1]))


def sampled(proof: CarriedProof, step: Step, turns: Sequence[Arrays]) -> Arrays:
    """Returns the stored values of every output, (turns, streams, values) by name."""
    rows: list[Arrays] = []
    for inputs in turns:
        outputs = named(step(inputs))
        names = [name for name in (*MAPS, "probability", *FAMILIARITY_OUTPUTS) if name in outputs]
        rows.append({name: np.stack([sample(one, proof.step(name)) for one in outputs[name]]) for name in names})
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def drawn(proof: CarriedProof, step: Step, turns: Sequence[Arrays]) -> np.ndarray:
    """Returns the last turn's probabilities over draws of the dropout masks, (draws, values).

    Each stream of a call is a draw of its own.
    """
    found: list[np.ndarray] = []
    while len(found) < proof.plan.draws:
        for inputs in turns:
            outputs = step(inputs)
        found += [sample(values, proof.step("probability")) for values in named(outputs)["probability"]]
    return np.stack(found)


def values_apart(proof: CarriedProof, found: Arrays) -> dict[str, float]:
    """Compares labels, probabilities, maps and familiarity of `sampled`."""
    apart = {name: np.abs(got.astype(np.float64) - proof.arrays[name][:, None]) for name, got in found.items()}
    told = [apart[name].max() for name in FAMILIARITY_OUTPUTS[:2] if name in apart]
    return (
        {
            "labels_equal": float((apart["label"] == 0).mean()),
            "probability_mean": float(apart["probability"].mean()),
            "probability_max": float(apart["probability"].max()),  # keeps NaN
            "map_levels_mean": float(
                max(apart[name].mean() for name in (*MAPS[1:], FAMILIARITY_OUTPUTS[2]) if name in apart)
            ),
        }
        | ({"familiarity_max": float(max(told))} if told else {})
    )


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
