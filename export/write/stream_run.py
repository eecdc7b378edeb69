"""The calls by which a stateful graph is proven: several streams that join, leave, reset and skip frames.

The graph computes all streams of a call in one batch, the torch module computes each stream alone. The two agree only
if no stream of the batch sees the frame, state, masks, gap or reset of another.
"""

from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from steadyseg.core.dropout import draw_mask
from steadyseg.core.motion import MotionEstimator, no_motion
from steadyseg.core.tracing import Signature
from steadyseg.export.run.sessions import Arrays, Runner
from steadyseg.export.write.proof import Pairs

GAP_AT, GAP, GAPS = 10, 3, 4
"""The call at which streams have gaps of 3 to 6 source frames; a gap of 6 is too long for a scene cut."""
RESET_AT = 20
"""The call at which only the first stream is reset."""
REPLACED_AT = 12
"""The call at which another stream takes the second stream's place; it gets the old state, and a reset."""
ANY_NUMBER = 3
"""Streams of the run if the graph takes any number of streams."""
ABSENT = {1: range(2), 2: (*range(5), *range(14, 18))}
"""Calls without the second and the third stream, where the graph takes any number: 1, 2 or 3 streams a call."""
APART = 7
"""Frames between the beginnings of two streams, which then show different pictures."""


class Turn(NamedTuple):
    """One frame of one stream of the run."""

    stream: int
    frame: int
    gap: int
    starts: bool
    """True where the frame is the first of a stream, or resets it."""


def turns(frames: int, streams: int | None) -> Iterator[list[Turn]]:
    """Yields the turns of each call, as many calls as frames: the streams of the batch, in an order that rotates.

    `streams`: B, or None for any number, so that streams join and leave.
    """
    absent = ABSENT if streams is None else {}
    for call in range(frames):
        present = [stream for stream in range(streams or ANY_NUMBER) if call not in absent.get(stream, ())]
        first = call % len(present)
        order = (*present[first:], *present[:first])
        yield [_turn(stream, call, frames, absent.get(stream, ())) for stream in order]


def _turn(stream: int, call: int, frames: int, absent: Container[int]) -> Turn:
    joins = call == 0 or call - 1 in absent
    starts = joins or (stream == 1 and call == REPLACED_AT) or (stream == 0 and call == RESET_AT)
    first = APART * (stream + 2 * (stream == 1 and call >= REPLACED_AT))
    return Turn(stream, (first + call) % frames, GAP + stream % GAPS if call == GAP_AT else 1, starts)


class Sides:
    """The state of one stream in torch and in the graph, and the motion of its frames."""

    def __init__(self, signature: Signature) -> None:
        self._first = {name: value[:1] for name, value in zip(signature.inputs, signature.example, strict=True)}
        self.ours = {name: value for name, value in self._first.items() if name.startswith("state_")}
        self.theirs: Arrays = {name: value.numpy() for name, value in self.ours.items()}
        self._estimate = MotionEstimator()

    def inputs(self, frame: np.ndarray, turn: Turn) -> dict[str, Tensor]:
        """Returns the inputs of a frame (h, w, 3) uint8 that are not states or masks."""
        inputs = {
            "frame": torch.from_numpy(frame)[None],
            "gap": torch.tensor([[float(turn.gap)]]),
            "reset": torch.tensor([[float(turn.starts)]]),
        }
        if "motion" in self._first:
            height, width = self._first["trust"].shape[1:]
            motion = self._estimate(frame, (height, width), 0 if turn.starts else 1) or no_motion((height, width))
            inputs |= {"motion": torch.as_tensor(motion.source)[None], "trust": torch.as_tensor(motion.trust)[None]}
        return inputs

    def carry(self, expected: Arrays, got: Arrays) -> None:
        """Keeps the states that both sides returned."""
        for name in self.ours:
            carried = name.removesuffix("_in") + "_out"
            self.ours[name], self.theirs[name] = torch.from_numpy(expected[carried]), got[carried]


def stream_pairs(module: nn.Module, run: Runner, signature: Signature, frames: Sequence[np.ndarray]) -> Pairs:
    """Yields the pair of each frame (h, w, 3) uint8 of each stream.

    Both sides get the same estimated motion, where the mean follows motion, and the same dropout masks, where they are
    inputs. Each side carries its own states.
    """
    is_free = 0 in signature.free_sizes["frame"]
    streams = [Sides(signature) for _ in range(ANY_NUMBER if is_free else len(signature.example[0]))]
    example = dict(zip(signature.inputs, signature.example, strict=True))
    for batch in turns(len(frames), None if is_free else len(streams)):
        sides = [streams[turn.stream] for turn in batch]
        given = [side.inputs(frames[turn.frame], turn) for side, turn in zip(sides, batch, strict=True)]
        for name, rate in signature.mask_rates.items():
            for inputs in given:
                inputs[name] = draw_mask(example[name][:1], rate)
        expected = [alone(module, signature, inputs | side.ours) for inputs, side in zip(given, sides, strict=True)]
        theirs = [
            {name: value.numpy() for name, value in inputs.items()} | side.theirs
            for inputs, side in zip(given, sides, strict=True)
        ]
        got = run({name: np.concatenate([inputs[name] for inputs in theirs]) for name in signature.inputs})
        for place, side in enumerate(sides):
            its = {name: values[place : place + 1] for name, values in got.items()}
            yield expected[place], its
            side.carry(expected[place], its)


def alone(module: nn.Module, signature: Signature, inputs: dict[str, Tensor]) -> Arrays:
    """Returns the module's outputs for one stream."""
    with torch.no_grad():
        values = module(*(inputs[name] for name in signature.inputs))
    return {name: value.numpy() for name, value in zip(signature.outputs, values, strict=True)}
