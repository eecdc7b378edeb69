"""The layers that were put into a network, as tests count them."""

from collections.abc import Iterator

from torch import nn

from steadyseg.core.insertion import PrependedLayer


def list_inserted(network: nn.Module) -> Iterator[PrependedLayer]:
    """The inserted layers in the order of the network's modules."""
    return (module for module in network.modules() if isinstance(module, PrependedLayer))
