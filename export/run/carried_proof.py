"""The proof in a graph file's metadata: frames, outputs to expect, and largest differences.

docs/reference/files.md describes the entries for programs in other languages. So the entries are plain: JSON, and
base64 of little-endian numbers. Pictures are stored small, each pixel a block of the frame. Every n-th expected value
is stored; n is odd, so that all columns of a vector unit are sampled.
"""

import base64
import binascii
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from steadyseg.core.errors import InputError, shorten
from steadyseg.core.frame import FAMILIARITY_OUTPUTS
from steadyseg.core.options import is_number, is_whole
from steadyseg.core.system.json_text import parse_json
from steadyseg.export.file.metadata import MAX_CHARACTERS, REMEDY, GraphMeta
from steadyseg.export.file.signature import MAPS

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


def read_proof(props: Mapping[str, str], meta: GraphMeta, name: str) -> CarriedProof:
    """Reads the proof of a file; InputError for a file without one, and for entries that no export writes."""
    if PROOF_KEY not in props:
        mend = "a classifier's file has none" if meta.kind == "classifier" else "export it with --stateful --with-proof"
        raise InputError(f"{name}: carries no proof; {mend}")
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
