"""`steadyseg models`: every name with its parameters and the arithmetic of one pass."""

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from core.checkpoint import read_meta
from seg.bundled import bundled_names, find_checkpoint
from seg.networks import build_network
from seg.options import PRESETS, UNET_PAPER

ARCHITECTURES = {"unet (--preset cpu)": PRESETS["cpu"].unet, "unet-paper (--preset paper)": UNET_PAPER}


def run_models() -> int:
    """Lists the bundled checkpoints and what the training presets build."""
    table = Table("name", "network", "size", "parameters", "GFLOPs", "stills: accuracy", "mIoU", "calibrated")
    for name in bundled_names():
        meta = read_meta(find_checkpoint(name))
        network = build_network(meta.architecture, meta.options, len(meta.classes))
        stills = meta.metrics.get("stills-dnn", {})
        figures = [f"{stills[key]:.4f}" if key in stills else "-" for key in ("accuracy", "miou")]
        calibrated = ", ".join(meta.calibration) or "no"
        table.add_row(name, meta.architecture, *_cost(network, meta.height, meta.width), *figures, calibrated)
    for name, options in ARCHITECTURES.items():
        table.add_row(name, "unet", *_cost(build_network("unet", options, 11), 360, 480), "-", "-", "-")
    console = Console()
    console.print(table)
    console.print(
        "GFLOPs: one pass, a multiplication and an addition counted as two. Any segmentation-models-pytorch network"
    )
    console.print("is trained by name: steadyseg train seg --network smp --architecture Unet --encoder resnet18 ...")
    return 0


def _cost(network: nn.Module, height: int, width: int) -> tuple[str, str, str]:
    """(size, millions of parameters, GFLOPs), counted by running it once without memory or arithmetic."""
    from torch.utils.flop_counter import FlopCounterMode

    parameters = sum(parameter.numel() for parameter in network.parameters())
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network.eval().to("meta")(torch.empty(1, 3, height, width, device="meta"))
    return f"{width}x{height}", f"{parameters / 1e6:.2f} M", f"{counter.get_total_flops() / 1e9:.1f}"
