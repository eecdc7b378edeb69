"""The calls by which a stateful graph is proven: a stream that begins, skips frames and is reset."""

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor, nn

from steadyseg.core.dropout import draw_mask
from steadyseg.core.motion import MotionEstimator, no_motion
from steadyseg.core.tracing import Signature
from steadyseg.export.file.sessions import Arrays, Runner
from steadyseg.export.write.proof import Pairs

GAPS = {10: 3, 15: 6}
"""Source frames since the last call, by call; 1 elsewhere. A gap of 6 is too long for a scene cut."""
RESETS = (0, 20)
"""The calls that begin the stream anew."""


def stream_pairs(module: nn.Module, run: Runner, signature: Signature, frames: Iterable[np.ndarray]) -> Pairs:
    """Yields the pair of each frame (h, w, 3) uint8.

    Both sides get the same estimated motion, where the mean follows motion, and the same dropout masks, where they are
    inputs. Each side carries its own states.
    """
    example, estimate = dict(zip(signature.inputs, signature.example, strict=True)), MotionEstimator()
    ours = {name: value for name, value in example.items() if name.startswith("state_")}
    theirs: Arrays = {name: value.numpy() for name, value in ours.items()}
    for call, frame in enumerate(frames):
        given = frame_inputs(frame, GAPS.get(call, 1), call in RESETS)
        if "motion" in example:
            size = example["trust"].shape[1:]
            motion = estimate(frame, (size[0], size[1]), 0 if call in RESETS else 1) or no_motion((size[0], size[1]))
            given |= {"motion": torch.as_tensor(motion.source)[None], "trust": torch.as_tensor(motion.trust)[None]}
        given |= {name: draw_mask(example[name], rate) for name, rate in signature.mask_rates.items()}
        expected = by_module(module, signature, given | ours)
        got = run({name: value.numpy() for name, value in given.items()} | theirs)
        yield expected, got
        carried = {name: name.removesuffix("_in") + "_out" for name in ours}
        ours = {name: torch.from_numpy(expected[out]) for name, out in carried.items()}
        theirs = {name: got[out] for name, out in carried.items()}


def frame_inputs(frame: np.ndarray, gap: int, starts: bool) -> dict[str, Tensor]:
    """Returns the inputs of a frame (H, W, 3) uint8 that every stream has; `starts`: it begins the stream anew."""
    return {
        "frame": torch.from_numpy(frame)[None],
        "gap": torch.tensor([[float(gap)]]),
        "reset": torch.tensor([[float(starts)]]),
    }


def by_module(module: nn.Module, signature: Signature, inputs: dict[str, Tensor]) -> Arrays:
    """Returns the module's outputs by name."""
    with torch.no_grad():
        values = module(*(inputs[name] for name in signature.inputs))
    return {name: value.numpy() for name, value in zip(signature.outputs, values, strict=True)}
