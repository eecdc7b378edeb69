"""`steadyseg models`: the pretrained checkpoints, from their records alone, and the names of what can be trained."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import get_args

from rich.table import Table

from steadyseg.app.console import METRIC_WORDS, Console, make_table
from steadyseg.classification.networks.layout import MODELS
from steadyseg.classification.pretrained import find_classifier, list_classifiers
from steadyseg.core.method import MODE_NAMES, method_of_fit, mode_title
from steadyseg.core.model.checkpoint import count_parameters, read_meta
from steadyseg.seg.options import NetworkName
from steadyseg.seg.pretrained import find_checkpoint, list_segmenters

COLUMNS = ("name", "size", "params", "data")


def run_models() -> int:
    """Lists the pretrained checkpoints and the networks that can be trained."""
    console = Console()
    console.print(
        table_of("segmentation", list_segmenters(), find_checkpoint, {"accuracy": "accuracy", "mIoU": "miou"})
    )
    if found := list_classifiers():
        console.print(table_of("classification", found, find_classifier, {"accuracy": "accuracy", "nll": "nll"}))
    modes = ", ".join(map(mode_title, MODE_NAMES))
    data = "data: measured on its test images (street: 100 drawn frames); compare rows of the same data alone"
    console.print(f"{data}\nmodes with a calibration: {modes}\n{METRIC_WORDS['nll']}\n", soft_wrap=True)
    networks = {"train seg": " ".join(get_args(NetworkName)), "train classification": " ".join(MODELS) + " timm:NAME"}
    for command, names in networks.items():
        console.print(f"{command} --network: {names}", soft_wrap=True)
    return 0


def table_of(title: str, names: Iterable[str], find: Callable[[str], Path], columns: dict[str, str]) -> Table:
    """A row for each checkpoint; `columns`: keys of its metrics by their headings."""
    table = make_table(f"pretrained: {title}", *COLUMNS, *columns, "modes")
    for name in names:
        meta = read_meta(path := find(name))
        size, parameters = f"{meta.width}x{meta.height}", f"{count_parameters(path) / 1e6:.2f} M"
        modes = dict.fromkeys(method_of_fit(fit).mode for fit in meta.calibration.values())
        row = meta.metrics.get("stills-dnn", {})
        figures = [f"{row[key]:.3f}" if key in row else "-" for key in columns.values()]
        table.add_row(name, size, parameters, row.get("data", "-"), *figures, ", ".join(modes) or "-")
    return table
