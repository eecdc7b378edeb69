"""The proof in a graph file's metadata: pictures, what PyTorch computes of them, and the run that compares.

docs/reference/files.md describes the entries. Pictures are stored small, each pixel a block of the frame. Every n-th
expected value is stored; n is odd, so that all columns of a vector unit are sampled.
"""

import base64
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import numpy as np

from steadyseg.core.errors import InputError, shorten
from steadyseg.core.frame import FAMILIARITY_OUTPUTS
from steadyseg.core.method import draws_dropout
from steadyseg.core.motion import Motion, no_motion
from steadyseg.export.file.metadata import MAX_CHARACTERS, REMEDY, GraphMeta
from steadyseg.export.file.sessions import Arrays, Runner
from steadyseg.export.file.signature import MAPS, state_names
from steadyseg.runtime.graph_backend import GraphStream

Step = Callable[[Arrays], Arrays]
"""Computes the next frame of a stream, and carries the states from call to call."""
PROOF_KEY, VERSION = "proof", "2"
SHIFT = (1.5, -0.75)
"""(x, y) in pixels of the mean: the motion of each source frame, where the mean follows motion."""
MAX_PIXELS, MAP_VALUES, PROBABILITY_VALUES = 12_000, 8192, 4096
"""Stored pixels of a picture, and values of a map and of the probabilities: with base64 a proof has 0.6 MB."""
DIFFERENCES = {
    "labels_equal": "labels equal in {:.4%} (at least {:.1%})",
    "probability_mean": "probabilities {:.1e} apart on average (at most {:g})",
    "probability_max": "and {:.1e} at most ({:g})",
    "map_levels_mean": "maps {:.4f} of 255 levels apart on average (at most {:g})",
    "familiarity_max": "familiarity {:.4f} apart (at most {:g})",
}
"""Texts for a compared difference and its bound, by name."""
BOUNDS = {
    "fp32": (0.999, 1e-4, 1e-4, 0.1, 0.01),
    "fp16": (0.995, 1e-3, 1.0, 0.255, 1.0),
    "reduced": (0.99, 5e-3, 1.0, 1.0, 0.1),
}
"""In the order of `DIFFERENCES`, by the file's number format; `reduced`: for a device that computes in fewer bits."""


class Turn(NamedTuple):
    """The inputs of a call, besides the states, which the call before returned."""

    picture: int
    gap: int
    reset: int


TURNS = (Turn(0, 1, 1), Turn(1, 1, 0), Turn(2, 3, 0), Turn(0, 1, 1), Turn(3, 1, 0))
"""The last picture is the third one's negative, whose structure is the opposite: a scene cut. The reset comes earlier,
within a scene, so that the cut does not hide an ignored reset."""


def block_of(meta: GraphMeta) -> int:
    """Pixels of the frame that a stored pixel stands for, along each side."""
    return math.ceil(math.sqrt(meta.height * meta.width / MAX_PIXELS))


def inputs_of(pictures: np.ndarray, turn: Turn, meta: GraphMeta) -> Arrays:
    """Returns the inputs of a turn without the states; `pictures`: as they are stored."""
    rows, columns = (np.arange(side) // block_of(meta) for side in (meta.height, meta.width))
    given = {
        "frame": np.ascontiguousarray(pictures[turn.picture][rows[:, None], columns])[None],
        "gap": np.full((1, 1), turn.gap, np.float32),
        "reset": np.full((1, 1), turn.reset, np.float32),
    }
    if meta.method.motion:
        height, width = meta.state_size
        given["motion"] = (no_motion((height, width)).source + turn.gap * np.array(SHIFT, np.float32))[None]
        ramp = 1 - np.arange(width, dtype=np.float32) / np.float32(2 * width)
        given["trust"] = np.broadcast_to(ramp, (1, height, width)).copy()
    return given


def sampled(outputs: Arrays) -> Arrays:
    """Returns every n-th value of the compared outputs, flattened; `probability`: of `probs` or the first state."""
    outputs = outputs | {"probability": outputs["probs" if "probs" in outputs else state_names(1, "out")[0]]}
    names = [name for name in (*MAPS, "probability", *FAMILIARITY_OUTPUTS) if name in outputs]
    limits = {name: PROBABILITY_VALUES if name == "probability" else MAP_VALUES for name in names}
    return {name: outputs[name].reshape(-1)[:: odd_step(outputs[name].size, limits[name])] for name in names}


def odd_step(values: int, stored: int) -> int:
    """Returns the smallest odd n for which every n-th value makes at most `stored` values."""
    return -(-values // stored) // 2 * 2 + 1


def measured(pictures: np.ndarray, meta: GraphMeta, step: Step) -> Arrays:
    """Returns the sampled outputs by name: a row for each turn."""
    rows = [sampled(step(inputs_of(pictures, turn, meta))) for turn in TURNS]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def stored_shapes(meta: GraphMeta) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Number format and shape of the stored arrays, by name."""
    turns, block = len(TURNS), block_of(meta)
    pixels, values = meta.height * meta.width, len(meta.classes) * math.prod(meta.state_size)
    small = -(-meta.height // block), -(-meta.width // block)
    told = FAMILIARITY_OUTPUTS if meta.reference_scores else ()
    of_map = "u1", (turns, len(range(0, pixels, odd_step(pixels, MAP_VALUES))))
    return {
        "frame": ("u1", (1 + max(turn.picture for turn in TURNS), *small, 3)),
        "probability": ("<f4", (turns, len(range(0, values, odd_step(values, PROBABILITY_VALUES))))),
        **dict.fromkeys((*MAPS, *told[2:]), of_map),
        **dict.fromkeys(told[:2], ("<f4", (turns, 1))),
    }


def read_proof(props: Mapping[str, str], meta: GraphMeta, name: str) -> Arrays:
    """Returns the arrays of a file's proof: `frame` and the expected values by name. InputError for a file without a
    proof, and for entries that no export writes."""
    if PROOF_KEY not in props:
        mend = "export it with --stateful --with-proof"
        if meta.kind == "classifier" or draws_dropout(meta.method.mode):
            mend = "files of classifiers and of random dropout have none"
        raise InputError(f"{name}: carries no proof; {mend}")
    try:
        if props[PROOF_KEY] != VERSION:
            raise InputError(f"its version is {shorten(props[PROOF_KEY])}, expected {VERSION!r}")
        stored = stored_shapes(meta).items()
        return {key: decoded(props[f"{PROOF_KEY}_{key}"], key, *form) for key, form in stored}
    except (KeyError, ValueError) as error:  # InputError is a ValueError
        raise InputError(f"{name}: its proof is malformed ({error}); {REMEDY} --with-proof") from error


def decoded(text: str, name: str, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Returns the array of a base64 text; InputError for another number of values, and for values that are not
    finite."""
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"{name} has more than {MAX_CHARACTERS} characters")
    values = np.frombuffer(base64.b64decode(text, validate=True), kind)
    if values.size != math.prod(shape) or not np.isfinite(values).all():
        raise InputError(f"{name} has {values.size} values, expected {shape}, all finite")
    return values.reshape(shape)


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


def verify(proof: Arrays, meta: GraphMeta, step: Step, *, reduced: bool = False) -> Verified:
    """Runs the proof, and times a call. `reduced`: the device computes in fewer bits than the file has."""
    differences = values_apart(measured(proof["frame"], meta, step), proof)
    bounds = dict(zip(DIFFERENCES, BOUNDS["reduced" if reduced else meta.precision], strict=True))
    return Verified(differences, bounds, call_ms(step, inputs_of(proof["frame"], TURNS[-1], meta)))


def values_apart(found: Arrays, stored: Arrays) -> dict[str, float]:
    """Compares labels, probabilities, maps and familiarity."""
    apart = {name: np.abs(got.astype(np.float64) - stored[name]) for name, got in found.items()}
    told = [apart[name].max() for name in FAMILIARITY_OUTPUTS[:2] if name in apart]
    levels = [apart[name].mean() for name in (*MAPS[1:], FAMILIARITY_OUTPUTS[2]) if name in apart]
    differences = {
        "labels_equal": float((apart["label"] == 0).mean()),
        "probability_mean": float(apart["probability"].mean()),
        "probability_max": float(apart["probability"].max()),  # keeps NaN
        "map_levels_mean": float(max(levels)),
    }
    return differences | ({"familiarity_max": float(max(told))} if told else {})


def call_ms(step: Step, inputs: Arrays) -> float:
    """Returns the median time of a call in milliseconds, of up to a second of calls and three or more."""
    times: list[float] = []
    while len(times) < 3 or (sum(times) < 1.0 and len(times) < 50):
        started = time.perf_counter()
        step(inputs)
        times.append(time.perf_counter() - started)
    return 1e3 * median(times)


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
