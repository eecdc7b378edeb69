"""The sides of the MC dropout comparison: same U-Net, same weights, same frame, same two results."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from steadyseg.core.dropout import Dropout
from steadyseg.core.errors import InputError
from steadyseg.core.model.checkpoint import load_weights
from steadyseg.core.predictors import MonteCarlo
from steadyseg.core.preprocess import Normalize
from steadyseg.seg.networks.staged import Flow
from steadyseg.seg.networks.unet import UNet
from steadyseg.seg.options import UNetOptions
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.seg.street.drive import Street

MODEL = "camvid-unet-s"
OURS = "ours"
SIDES = {
    OURS: "steadyseg.core.predictors.MonteCarlo: the prefix once, the rest N times, a running mean",
    "ours-whole": "the control: MonteCarlo without a shared prefix, N whole passes",
    "peer-loop": "torch-uncertainty mc_dropout, on_batch=False: N whole passes, all logits kept",
    "peer-batch": "torch-uncertainty mc_dropout, on_batch=True (its default): one pass over N copies of the frame",
}
Statistics = tuple[Tensor, Tensor]
"""Result of every side: mean probabilities (1, K, h, w) and mean entropy of the passes (1, h, w) in nats."""


@dataclass(frozen=True)
class Setup:
    """Setup that all sides share."""

    layout: str = "contiguous"
    """contiguous or channels-last: of the weights and of the frame."""
    places: tuple[str, ...] = ()
    """Dropout places; the checkpoint's (the published ones) without it."""
    peer_rate: float | None = None
    """Another dropout rate for the peer alone, to see the check fail."""


class WholePasses(nn.Module):
    """A U-Net as anyone would write it: every stage, every dropout, one after the other; no `prefix` to share.

    `UNet.forward` will not do for the peer: it knows our Dropout only and would pass over every nn.Dropout.
    """

    def __init__(self, network: UNet) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        flow = Flow(x)
        for stage, dropout in zip(self.network.stages, self.network.dropouts, strict=True):
            flow = stage(flow)
            flow = flow._replace(x=dropout(flow.x))
        return self.network.head(flow.x)


def our_network(setup: Setup) -> tuple[UNet, Tensor]:
    """The pretrained network with its dropout drawing, and one normalised 360x480 frame (1, 3, h, w) of the street."""
    opened = read_segmenter(MODEL)
    meta = opened.meta
    recorded: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in meta.options.items()}
    options = UNetOptions(**recorded)
    if setup.places:
        options = dataclasses.replace(options, dropout_places=setup.places)
    network = UNet(len(meta.classes), options)
    load_weights(network, opened.tensors, opened.path)
    layout = torch.channels_last if setup.layout == "channels-last" else torch.contiguous_format
    image = torch.from_numpy(Street(seed=7, height=meta.height, width=meta.width).frame(40).image)
    frame = Normalize(meta.mean, meta.std)(image[None].permute(0, 3, 1, 2).float())
    return network.to(memory_format=layout).eval(), frame.contiguous(memory_format=layout)


def peer_network(setup: Setup) -> tuple[UNet, Tensor]:
    """The network with nn.Dropout for every Dropout of ours: those are what the peer finds and switches on.

    Ours draws at a rate rounded to 1/256 (0.2 -> 51/256), so the peer gets that very rate.
    """
    network, frame = our_network(setup)
    for module in list(network.modules()):
        for name, child in module.named_children():
            if isinstance(child, Dropout):
                rate = round(256 * child.rate) / 256 if setup.peer_rate is None else setup.peer_rate
                setattr(module, name, nn.Dropout(rate))
    return network.eval(), frame


def build(side: str, samples: int, setup: Setup) -> tuple[Callable[[], Statistics], UNet]:
    """Returns the call that is measured, and the U-Net inside it."""
    if side.startswith(OURS):
        network, frame = our_network(setup)
        predictor = MonteCarlo(network if side == OURS else WholePasses(network), samples)

        def ours() -> Statistics:
            prediction = predictor(frame)
            return prediction.probs, prediction.member_entropy

        return ours, network
    try:  # here and not above: its imports must not count as our memory
        from torch_uncertainty.methods import mc_dropout
    except ImportError as error:
        raise InputError(f"torch-uncertainty cannot be imported ({error}); see studies/peers/README.md") from error
    network, frame = peer_network(setup)
    model = mc_dropout(WholePasses(network), samples, on_batch=side == "peer-batch", task="segmentation").eval()

    def peer() -> Statistics:
        probs = torch.softmax(model(frame).unflatten(0, (samples, -1)), dim=2)  # (N * b, K, h, w) as it returns them
        return probs.mean(0), torch.special.entr(probs).sum(2).mean(0)

    return peer, network
