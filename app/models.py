"""`steadyseg models`: the pretrained checkpoints, from their records alone; `--networks` adds what can be trained."""

from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from steadyseg.app.console import Console, make_table
from steadyseg.classification.pretrained import find_classifier, list_classifiers
from steadyseg.core.method import method_of_fit
from steadyseg.core.model.checkpoint import CheckpointMeta, count_parameters, read_meta
from steadyseg.seg.pretrained import find_checkpoint, list_segmenters

COLUMNS = ("name", "size", "params")


@dataclass(frozen=True)
class ModelsJob:
    """A list of networks."""

    networks: bool = False
    """List the networks of the presets and all families of classifiers too, with FLOPs (needs torch)."""


def run_models(job: ModelsJob) -> int:
    """Lists the pretrained checkpoints and, if asked for, the networks that can be trained."""
    console = Console()
    console.print(segmenter_table())
    if list_classifiers():
        console.print(classifier_table())
    if job.networks:
        from steadyseg.app.networks_table import print_networks  # torch

        print_networks(console)
    else:
        console.print("networks to train, with FLOPs: steadyseg models --networks", soft_wrap=True)
    return 0


def segmenter_table() -> Table:
    table = make_table("pretrained: segmentation", *COLUMNS, "accuracy", "mIoU", "calibrated")
    for name in list_segmenters():
        path = find_checkpoint(name)
        meta = read_meta(path)
        table.add_row(name, *size_of(meta, path), *figures(meta, "accuracy", "miou"), describe_calibration(meta))
    return table


def classifier_table() -> Table:
    table = make_table("pretrained: classification", *COLUMNS, "N", "accuracy", "NLL", "calibrated")
    for name in list_classifiers():
        path = find_classifier(name)
        meta = read_meta(path)
        row = figures(meta, "samples", "accuracy", "nll")
        table.add_row(name, *size_of(meta, path), *row, describe_calibration(meta))
    return table


def size_of(meta: CheckpointMeta, path: Path) -> tuple[str, str]:
    """(size of the input, millions of parameters)."""
    return f"{meta.width}x{meta.height}", f"{count_parameters(path) / 1e6:.2f} M"


def figures(meta: CheckpointMeta, *keys: str) -> list[str]:
    """Metrics of the record, measured on single images without dropout, else with N passes."""
    row = meta.metrics.get("stills-dnn") or meta.metrics.get("stills-bnn") or {}
    values = [row.get(key, "-") for key in keys]
    return [f"{value:.3f}" if isinstance(value, float) else str(value) for value in values]


def describe_calibration(meta: CheckpointMeta) -> str:
    fitted = dict.fromkeys(method_of_fit(fit).mode for fit in meta.calibration.values())
    return ", ".join(fitted) or "-"
