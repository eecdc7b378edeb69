"""The figures of docs/studies/classification."""

from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt

from steadyseg.studies.harness.plots import save_figure

COLORS = {"plain": "#0072b2", "smooth": "#009e73", "mc": "#e69f00", "mc-smooth": "#d55e00"}
"""Okabe and Ito's, told apart by colour-blind readers."""


def write_plots(record: dict[str, Any], page: Path) -> None:
    """Draws the page's pictures."""
    with plt.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        if any("curve" in found for found in record.values()):
            save_figure(sizes(record), page / "sizes.png")
        if record:
            save_figure(reliability(record), page / "reliability.png")


def kind_of(name: str) -> str:
    """resnet18-mc-smooth-0 -> mc-smooth."""
    return "-".join(name.split("-")[1:-1])


def sizes(record: dict[str, Any]) -> Any:
    """ResNet-18: a line a seed, dashed the networks without dropout."""
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.2))
    labelled: set[str] = set()
    for name, found in record.items():
        if not name.startswith("resnet18") or name.endswith("ensemble"):
            continue
        kind = kind_of(name)
        label = None if kind in labelled else kind
        labelled.add(kind)
        for place, key in enumerate(("nll", "accuracy")):
            if "curve" in found:
                points = found["curve"]
                axes[place].plot([p["n"] for p in points], [p[key] for p in points], color=COLORS[kind], label=label)
            else:
                axes[place].axhline(found["off"][key], color=COLORS[kind], linestyle="--", linewidth=1, label=label)
    for place, title in enumerate(("NLL", "accuracy")):
        axes[place].set(xscale="log", xlabel="passes", ylabel=title, xticks=[1, 2, 5, 10, 20, 50])
        axes[place].set_xticklabels(["1", "2", "5", "10", "20", "50"])
    axes[0].legend(fontsize=7, frameon=False)
    figure.tight_layout()
    return figure


def reliability(record: dict[str, Any]) -> Any:
    """Accuracy against confidence of the networks of seed 0."""
    figure, axes = plt.subplots(figsize=(4.2, 3.6))
    axes.plot([0, 1], [0, 1], color="#999999", linewidth=1)
    for name, found in record.items():
        if name.startswith("resnet18") and name.endswith("-0"):
            bins = [one for one in found["off"]["reliability"] if one["count"] >= 10]
            axes.plot(
                [one["confidence"] for one in bins],
                [one["accuracy"] for one in bins],
                ".-",
                color=COLORS[kind_of(name)],
                label=f"{kind_of(name)} ({100 * found['off']['ece']:.1f} %)",
            )
    axes.set(xlabel="confidence", ylabel="accuracy", xlim=(0.2, 1), ylim=(0.2, 1))
    axes.legend(fontsize=7, title="network (ECE)", title_fontsize=7, frameon=False)
    return figure
