"""Segmentation networks by name: U-Net, SegNet, and all of segmentation-models-pytorch."""

from typing import Any

from torch import nn

from steadyseg.core.errors import InputError
from steadyseg.core.options import read_options
from steadyseg.seg.networks.segnet import SegNet
from steadyseg.seg.networks.smp import SmpNetwork
from steadyseg.seg.networks.unet import UNet
from steadyseg.seg.options import SegNetOptions, SmpOptions, UNetOptions

Options = UNetOptions | SegNetOptions | SmpOptions

BUILDERS: dict[str, tuple[Any, type[Options]]] = {
    "unet": (UNet, UNetOptions),
    "segnet": (SegNet, SegNetOptions),
    "smp": (SmpNetwork, SmpOptions),
}

BEFORE_RECORDED: dict[str, dict[str, Any]] = {"unet": {"order": "conv-relu-bn"}}
"""What checkpoints had before their record named these options."""


def build_network(architecture: str, options: dict[str, Any] | Options, num_classes: int) -> nn.Module:
    """Builds the network of a checkpoint's record or of a training configuration; InputError for unknown names."""
    if architecture not in BUILDERS:
        raise InputError(f"unknown architecture {architecture!r}; choose from {', '.join(BUILDERS)}")
    network_class, options_class = BUILDERS[architecture]
    if isinstance(options, dict):
        options = BEFORE_RECORDED.get(architecture, {}) | options
        options = read_options(options_class, options, architecture)
    network: nn.Module = network_class(num_classes, options)
    return network
