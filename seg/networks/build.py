"""Segmentation networks by name: our U-Net, and those of segmentation-models-pytorch."""

from typing import Any

from torch import nn

from core.errors import InputError
from core.options import read_options
from seg.networks.smp import SmpNetwork
from seg.networks.unet import UNet
from seg.options import SmpOptions, UNetOptions

BUILDERS = {"unet": (UNet, UNetOptions), "smp": (SmpNetwork, SmpOptions)}


def build_network(architecture: str, options: dict[str, Any] | UNetOptions | SmpOptions, num_classes: int) -> nn.Module:
    """Builds the network of a checkpoint's record or of a training configuration; InputError for unknown names."""
    if architecture not in BUILDERS:
        raise InputError(f"unknown architecture {architecture!r}; choose from {', '.join(BUILDERS)}")
    network_class, options_class = BUILDERS[architecture]
    if isinstance(options, dict):
        options = read_options(options_class, options, architecture)
    return network_class(num_classes, options)
