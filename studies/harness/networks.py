"""The arithmetic of a network, and digests of what its figures depend on."""

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from steadyseg.core.method import MethodOptions
from steadyseg.core.model.checkpoint import read_meta
from steadyseg.core.training.run_folder import MODEL_NAME
from steadyseg.runtime.open_model import find_model
from steadyseg.studies.harness.study import digest_of_weights

if TYPE_CHECKING:
    from torch import nn


def name_of(model: str) -> str:
    """The name of a file without folder and ending; of a training's model the name of its folder."""
    path = Path(model)
    return path.parent.name if path.stem == Path(MODEL_NAME).stem else path.stem


def digest_of(model: str) -> str:
    """The digest of the weights of an included network, or of a file."""
    return digest_of_weights(find_model(model))


def rests_on(model: str, data: str, *methods: MethodOptions, familiarity: bool = False) -> str:
    """Joins the digests of all that figures of a network depend on.

    Args:
        model: An included network, or a file.
        data: Digest of the data.
        methods: Methods of the figures, whose fitted temperatures count.
        familiarity: True where the figures use the familiarity statistics: their scores at home count, and the rule by
            which the temperature follows a frame.
    """
    meta = read_meta(find_model(model))
    parts = [data, digest_of(model), *(str(one.resolve(meta).temperature) for one in methods)]
    if familiarity:
        used = json.dumps([meta.familiarity.get("scores"), meta.familiarity.get("expected")])
        parts.append(hashlib.sha256(used.encode()).hexdigest()[:12])
    return "-".join(parts)


def pass_gflops(network: "nn.Module", size: tuple[int, int]) -> float:
    """Arithmetic of one pass over (1, 3, h, w), counted without memory or arithmetic; the network is used up."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network.eval().to("meta")(torch.empty(1, 3, *size, device="meta"))
    return round(counter.get_total_flops() / 1e9, 3)
