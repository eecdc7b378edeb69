"""The proof in an exported file: a few frames of the synthetic street, and the values that torch computes for them.

The frames cover the events of a stream: its beginning, the next frame, dropped frames, a reset, and a scene cut without
a reset.
"""

import base64

import numpy as np
import torch

from steadyseg.app.console import Console
from steadyseg.app.export.segmenter import proof_frames, torch_runner
from steadyseg.core.errors import CheckFailed
from steadyseg.export.file.metadata import GraphMeta
from steadyseg.export.write.traced import Traced
from steadyseg.runtime.carried_proof import (
    PROOF_KEY,
    VERSION,
    CarriedState,
    graph_step,
    measured,
    stored_shapes,
    verify,
)
from steadyseg.runtime.graph_backend import GraphStream
from steadyseg.runtime.kernels.resize import resize_frame

PICTURES = (0, 1, 4)
"""Stored frames of the street before the negative; the turns have the same gaps between frames."""


def proof_entries(traced: Traced, meta: GraphMeta, console: Console) -> dict[str, str]:
    """Returns the entries of ONNX metadata_props; CheckFailed if the graph fails its own proof on this CPU."""
    torch.manual_seed(0)
    proof = expected(traced, meta)
    verified = verify(proof, meta, graph_step(GraphStream(traced.model(meta).SerializeToString(), meta, "cpu")))
    if not verified.holds:
        raise CheckFailed(f"the graph fails the proof that it would carry: {verified}")
    console.print(f"carries a proof, and passes it here: {verified}", soft_wrap=True)
    packed = {name: proof[name].astype(kind).tobytes() for name, (kind, _) in stored_shapes(meta).items()}
    return {
        **{f"{PROOF_KEY}_{name}": base64.b64encode(data).decode() for name, data in packed.items()},
        PROOF_KEY: VERSION,
    }


def expected(traced: Traced, meta: GraphMeta) -> dict[str, np.ndarray]:
    """Returns the pictures, and what the torch module computes of them: a row for each turn."""
    _, height, width, _ = stored_shapes(meta)["frame"][1]
    pictures = [resize_frame(proof_frames()[number], (height, width))[0] for number in PICTURES]
    stored = np.stack([*pictures, 255 - pictures[-1]])
    example = zip(traced.signature.inputs, traced.signature.example, strict=True)
    zeros = {name: value.numpy() for name, value in example if name.startswith("state_")}
    return measured(stored, meta, CarriedState(torch_runner(traced), zeros)) | {"frame": stored}
