"""`steadyseg models --networks`: the networks of the presets and every family of classifiers, counted by torch."""

import torch
from rich.table import Table
from torch import nn

from steadyseg.app.console import Console, make_table
from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.networks.layout import FAMILIES, MODELS
from steadyseg.classification.options import ClassifierOptions
from steadyseg.seg.networks.build import Options, build_network
from steadyseg.seg.options import UNET_PAPER, SegNetOptions
from steadyseg.seg.presets import PRESETS

ARCHITECTURES: dict[str, tuple[str, Options]] = {
    "unet (--preset cpu)": ("unet", PRESETS["cpu"].unet),
    "unet-replica (--preset replica)": ("unet", UNET_PAPER),
    "segnet (--network segnet)": ("segnet", SegNetOptions()),
    "segnet (--config segnet_channels=64)": ("segnet", SegNetOptions(segnet_channels=64)),
}
COLUMNS = ("name", "size", "params", "GFLOPs")
SIDE, CLASSES = 32, 10
"""The list of classifiers is for pictures of CIFAR-10's size."""


def print_networks(console: Console) -> None:
    """Prints the networks of the training presets, and every family of classifiers."""
    console.print(segmentation_presets())
    console.print(classifier_families())
    console.print(
        "GFLOPs: one pass, a multiplication and an addition counted as two. Any segmentation-models-pytorch network is "
        "trained by name (steadyseg train seg --network smp --config architecture=Unet encoder=resnet18 ...), and any "
        "timm network (steadyseg train classification --network timm:NAME ...).",
        soft_wrap=True,
    )


def segmentation_presets() -> Table:
    table = make_table("segmentation: train seg", *COLUMNS)
    for name, (architecture, options) in ARCHITECTURES.items():
        table.add_row(name, *cost_of(build_network(architecture, options, 11), 360, 480))
    return table


def classifier_families() -> Table:
    """Table of the classifiers: a row for each network, a line between families."""
    title = f"classification: --model NAME, {CLASSES} classes"
    table = make_table(title, *COLUMNS)
    for family in FAMILIES:
        for name in (name for name, (of, _) in MODELS.items() if of == family):
            with torch.device("meta"):  # saves 500 MB for a VGG; the networks above need values to place smoothing
                network = build_classifier(ClassifierOptions(network=name), CLASSES)
            table.add_row(name, *cost_of(network, SIDE, SIDE))
        table.add_section()
    return table


def cost_of(network: nn.Module, height: int, width: int) -> tuple[str, str, str]:
    """(size, millions of parameters, GFLOPs), counted by a pass on torch's meta device, which computes nothing."""
    from torch.utils.flop_counter import FlopCounterMode

    parameters = sum(parameter.numel() for parameter in network.parameters())
    leave_out_norms(network)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network.eval().to("meta")(torch.empty(1, 3, height, width, device="meta"))
    return f"{width}x{height}", f"{parameters / 1e6:.2f} M", f"{counter.get_total_flops() / 1e9:.2f}"


def leave_out_norms(network: nn.Module) -> None:
    """Removes BatchNorms, which deployment folds into the convolutions: with BatchNorms the counting takes three times
    as long."""
    for module in list(network.modules()):
        for name, child in module.named_children():
            if type(child) is nn.BatchNorm2d:
                setattr(module, name, nn.Identity())
