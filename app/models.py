"""`steadyseg models`: lists all networks with parameters and FLOPs; pretrained checkpoints first."""

import torch
from rich import box
from rich.table import Table
from torch import nn

from steadyseg.app.console import Console
from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.networks.layout import FAMILIES, MODELS
from steadyseg.classification.options import ClassifierOptions
from steadyseg.classification.pretrained import find_classifier, list_classifiers
from steadyseg.core.method import method_of_fit
from steadyseg.core.model.checkpoint import CheckpointMeta, read_meta
from steadyseg.seg.networks.build import Options, build_network
from steadyseg.seg.options import UNET_PAPER, SegNetOptions
from steadyseg.seg.presets import PRESETS
from steadyseg.seg.pretrained import find_checkpoint, list_segmenters

ARCHITECTURES: dict[str, tuple[str, Options]] = {
    "unet (--preset cpu)": ("unet", PRESETS["cpu"].unet),
    "unet-replica (--preset replica)": ("unet", UNET_PAPER),
    "segnet (--network segnet)": ("segnet", SegNetOptions()),
    "segnet (--config segnet_channels=64)": ("segnet", SegNetOptions(segnet_channels=64)),
}
COLUMNS = ("name", "size", "params", "GFLOPs")
SIDE, CLASSES = 32, 10
"""The list of classifiers is for pictures of CIFAR-10's size."""


def run_models() -> int:
    """Lists the pretrained checkpoints, the networks of the training presets, and every family of classifiers."""
    console = Console()
    console.print(segmenter_table())
    if list_classifiers():
        console.print(classifier_table())
    console.print(segmentation_presets())
    console.print(classifier_families())
    console.print(
        "GFLOPs: one pass, a multiplication and an addition counted as two. Any segmentation-models-pytorch network is "
        "trained by name (steadyseg train seg --network smp --config architecture=Unet encoder=resnet18 ...), and any "
        "timm network (steadyseg train classification --network timm:NAME ...).",
        soft_wrap=True,
    )
    return 0


def segmenter_table() -> Table:
    table = make_table("pretrained: segmentation", *COLUMNS, "accuracy", "mIoU", "calibrated")
    for name in list_segmenters():
        meta = read_meta(find_checkpoint(name))
        cost = cost_of(build_network(meta.architecture, meta.options, len(meta.classes)), meta.height, meta.width)
        table.add_row(name, *cost, *figures(meta, "accuracy", "miou"), describe_calibration(meta))
    return table


def classifier_table() -> Table:
    table = make_table("pretrained: classification", "name", "params", "GFLOPs", "N", "accuracy", "NLL", "calibrated")
    for name in list_classifiers():
        meta = read_meta(find_classifier(name))
        cost = cost_of(build_classifier(meta.options, len(meta.classes)), meta.height, meta.width)
        table.add_row(name, *cost[1:], *figures(meta, "samples", "accuracy", "nll"), describe_calibration(meta))
    return table


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
            with torch.device("meta"):  # 500 MB for a VGG; smoothing and dropout need real values to find their places
                network = build_classifier(ClassifierOptions(network=name), CLASSES)
            table.add_row(name, *cost_of(network, SIDE, SIDE))
        table.add_section()
    return table


def make_table(title: str, first: str, *columns: str) -> Table:
    """A table that fits 80 characters and cuts off no name or number."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column in (first, *columns):
        table.add_column(column, no_wrap=column != "calibrated")
    return table


def figures(meta: CheckpointMeta, *keys: str) -> list[str]:
    """Metrics of the record, measured on single images without dropout, else with N passes."""
    row = meta.metrics.get("stills-dnn") or meta.metrics.get("stills-bnn") or {}
    values = [row.get(key, "-") for key in keys]
    return [f"{value:.3f}" if isinstance(value, float) else str(value) for value in values]


def describe_calibration(meta: CheckpointMeta) -> str:
    fitted = dict.fromkeys(method_of_fit(fit).mode for fit in meta.calibration.values())
    return ", ".join(fitted) or "-"


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
