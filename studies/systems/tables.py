"""The tables of docs/studies/systems."""

from typing import Any

import torch

from steadyseg.seg.networks.segnet import SegNet
from steadyseg.seg.options import SegNetOptions
from steadyseg.studies.harness.study import PAGES, Cache
from steadyseg.studies.harness.tables import Tables, table
from steadyseg.studies.systems.occupancy import METHODS
from steadyseg.studies.systems.stream import EDGE_WIDTH, KEYS, LAGS, rules

PAGE = PAGES / "systems"
NOT_MEASURED = "| state |\n| --- |\n| not measured |"
MODES = {"dnn": "no dropout", "bnn": "one dropout pass"}
NOT_AT_HAND = {
    "Cityscapes": "accuracy not measured: data not at hand (the sample is one frame of 256x128)",
    "EMG gestures, Localization": "not measured: data not at hand",
    "NYU Depth v2": "not built, not measured: data not at hand",
    "CamVid's 30 Hz sequences": "accuracy not measured: data not at hand (the sample is six frames with one label)",
}


def tables() -> Tables:
    """The tables of the page by name; each is a function that writes the table."""
    record = {name: part["rows"] for name, part in Cache(PAGE / "record.json").record.items()}
    return {
        "lag": lambda: lag(record),
        "edges": lambda: edges(record),
        "occupancy": lambda: occupancy(record),
        "memory": lambda: memory(record),
        "depth": lambda: depth(record),
        "segnet": lambda: segnet(record),
        "widths": widths,
        "absent": lambda: table(("data", "state"), NOT_AT_HAND.items()),
    }


def percent(value: float) -> str:
    return f"{100 * value:.1f}"


def figures(row: dict[str, Any]) -> list[str]:
    """NLL, and the other figures of a row in percent."""
    return [f"{row['nll']:.4f}", *(percent(row[key]) for key in KEYS[1:])]


TITLES = ("NLL", "accuracy", "mIoU", "ECE", "consistency")


def lag(record: dict[str, Any]) -> str:
    """Figures by rule on the val stream."""
    return by_rule(record.get("lag", {}))


def by_rule(found: dict[str, Any]) -> str:
    """A row for each mode and rule."""
    lines = [
        [MODES[mode], rule, *figures(found[mode][rule])]
        for mode in MODES
        for rule in rules(LAGS)
        if rule in found.get(mode, {})
    ]
    return table(("network", "mean", *TITLES), lines)


def edges(record: dict[str, Any]) -> str:
    """Figures on label edges and away from them."""
    lines = []
    for rule in rules(LAGS) if "lag" in record else ():
        row = record["lag"]["dnn"][rule]
        for name in ("on", "away"):
            part = row["edges"][name]
            shown = [percent(part[key]) for key in ("share", "accuracy", "miou", "ece")]
            lines.append(
                [rule, {"on": "on edges", "away": "away from them"}[name], shown[0], f"{part['nll']:.4f}", *shown[1:]]
            )
    return table(("mean", f"pixels, edges {EDGE_WIDTH} wide", "share, %", "NLL", "accuracy", "mIoU", "ECE"), lines)


def occupancy(record: dict[str, Any]) -> str:
    """Figures of the sensor stream by file and method: mean over the seeds, and their range for the NLL."""
    lines = []
    for name, found in record.get("occupancy", {}).items():
        for method in METHODS:
            row = found["methods"][method]
            low, high = row["nll"]["low"], row["nll"]["high"]
            spread = f"{row['nll']['mean']:.3f} ({low:.3f} to {high:.3f})"
            lines.append([name, method, spread, percent(row["accuracy"]["mean"]), percent(row["ece"]["mean"])])
    return table(("file", "method", "NLL (three seeds)", "accuracy", "ECE"), lines)


def depth(record: dict[str, Any]) -> str:
    """Figures of depth on the streets of the test, by method."""
    lines = []
    found = record.get("depth", {})
    for method in METHODS if found else ():
        row = found[method]
        within = [percent(row[f"delta_{power}"]) for power in (1, 2, 3)]
        lines.append([method, f"{row['nll']:.3f}", f"{row['rmse_m']:.2f}", *within])
    return table(("method", "NLL of log depth", "RMSE, m", "within 1.25, %", "1.25^2", "1.25^3"), lines) or NOT_MEASURED


def memory(record: dict[str, Any]) -> str:
    """Resident memory of a training by number of images."""
    rows = sorted(record.get("memory", {}).items(), key=lambda item: int(item[0]))
    lines = [
        [count, f"{row['before_mb']:.0f}", f"{row['peak_mb']:.0f}", f"{row['peak_mb'] - row['before_mb']:.0f}"]
        for count, row in rows
    ]
    return table(("images", "before, MB", "peak, MB", "of the data, MB"), lines) or NOT_MEASURED


def widths() -> str:
    """Parameters of SegNet with 11 classes, by the channels of its first stage."""
    lines = []
    for channels, note in ((16, "trained below"), (64, "published")):
        with torch.device("meta"):
            network = SegNet(11, SegNetOptions(segnet_channels=channels))
        lines.append([str(channels), note, f"{sum(one.numel() for one in network.parameters()) / 1e6:.2f} M"])
    return table(("channels of the first stage", "", "parameters"), lines)


def segnet(record: dict[str, Any]) -> str:
    """Figures of the trained SegNet by rule, where it was trained."""
    return by_rule(record.get("segnet", {})) or NOT_MEASURED
