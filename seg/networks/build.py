"""Segmentation networks by name: our U-Net, and those of segmentation-models-pytorch."""

import dataclasses
from typing import Any

from torch import nn

from core.errors import InputError
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
        known = {field.name for field in dataclasses.fields(options_class)}
        unknown = options.keys() - known
        if unknown:
            raise InputError(
                f"unknown option {sorted(unknown)[0]!r} of {architecture}; known are {', '.join(sorted(known))}"
            )
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
        options = options_class(**values)
    try:
        return network_class(num_classes, options)
    except InputError:
        raise
    except (TypeError, ValueError, AttributeError) as error:  # a record may hold values of any type
        first = str(error).splitlines()[0]
        raise InputError(f"the options of {architecture} make no network ({first}); got {options}") from error
