"""The figures of docs/studies/results, from the same rows as its tables."""

from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt

from steadyseg.studies.harness.plots import save_figure
from steadyseg.studies.results.matrix import COMPARED, RECIPES, Network

COLORS = {"dnn": "#0072b2", "bnn-30": "#e69f00", "vq-dnn": "#009e73", "vq-bnn": "#cc79a7", "vq-dnn motion": "#d55e00"}
"""Okabe and Ito's, told apart by colour-blind readers."""
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "svg.hashsalt": "s",
}


PROTOCOL = "stream"
"""The protocol whose curves are drawn."""


def drop_undrawn_curves(job: str, rows: dict[str, Any]) -> dict[str, Any]:
    """A job's rows without the reliability bins and risk curves that no figure shows; they are most of a record."""
    is_drawn = job in [Network(recipe, True, True).name for recipe in RECIPES]
    drawn = {"risk_coverage": set(COLORS), "reliability": {*COLORS, *(f"{name} calibrated" for name in COLORS)}}
    return {
        protocol: {
            method: {
                key: value
                for key, value in row.items()
                if key not in drawn or (is_drawn and protocol == PROTOCOL and method in drawn[key])
            }
            for method, row in found.items()
        }
        for protocol, found in rows.items()
    }


def write_plots(rows: dict[str, Any], page: Path) -> None:
    """Draws the page's pictures, of the networks that are measured."""
    with plt.rc_context(STYLE):
        for recipe in RECIPES:
            name = Network(recipe, True, True).name
            if name not in rows:
                continue
            save_figure(reliability(rows, name), page / f"reliability-{recipe}.png")
            save_figure(risk(rows, name), page / f"risk-{recipe}.png")
        if any(network.name in rows for network in COMPARED if network.dropout):
            save_figure(passes(rows), page / "passes.png")


def reliability(rows: dict[str, Any], job: str) -> Any:
    """Accuracy against confidence in ten bins; the diagonal is what honest confidence gives."""
    figure, axes = plt.subplots(figsize=(6.2, 3.6))
    axes.plot([0, 1], [0, 1], color="#999999", linewidth=1)
    for method, color in COLORS.items():
        for suffix, line in (("", "--"), (" calibrated", "-")):
            found = rows[job]["rows"][PROTOCOL].get(method + suffix)
            if found:
                bins = [one for one in found["reliability"] if one["count"] > 200]
                axes.plot(
                    [one["confidence"] for one in bins],
                    [one["accuracy"] for one in bins],
                    line,
                    color=color,
                    linewidth=1.2,
                    label=f"{method}{suffix} ({100 * found['ece']:.1f} %)",
                )
    axes.set(xlabel="confidence", ylabel="accuracy", xlim=(0.2, 1), ylim=(0.2, 1))
    axes.legend(
        fontsize=7, title="row (ECE)", frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=3
    )
    return figure


def risk(rows: dict[str, Any], job: str) -> Any:
    """Error rate among the most confident pixels against their share."""
    figure, axes = plt.subplots(figsize=(4.2, 3.2))
    for method, color in COLORS.items():
        found = rows[job]["rows"][PROTOCOL].get(method)
        if found:
            curve = found["risk_coverage"]
            axes.plot(
                [100 * point["coverage"] for point in curve],
                [100 * point["risk"] for point in curve],
                color=color,
                label=f"{method} (AURC {found['aurc']:.4f})",
            )
    axes.set(xlabel="answered pixels, most confident first (%)", ylabel="wrong among them (%)", xlim=(0, 100))
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=7, frameon=False)
    return figure


def passes(rows: dict[str, Any]) -> Any:
    """NLL for 1, 5 and 30 dropout passes; dashed, the one pass that temporal smoothing needs."""
    figure, all_axes = plt.subplots(1, len(RECIPES), figsize=(7.5, 3.3), squeeze=False)
    for axes, recipe in zip(all_axes[0], RECIPES, strict=True):
        for smoothing, color in ((False, "#0072b2"), (True, "#d55e00")):
            found = rows.get(Network(recipe, True, smoothing).name, {}).get("rows", {}).get("stream")
            if not found:
                continue
            label = "MC + spatial" if smoothing else "MC"
            axes.plot([1, 5, 30], [found[f"bnn-{n}"]["nll"] for n in (1, 5, 30)], "o-", color=color, label=label)
            axes.axhline(
                found["vq-bnn"]["nll"], color=color, linestyle="--", linewidth=1, label=f"{label} + temporal, 1 pass"
            )
        axes.set(xscale="log", xlabel="passes", ylabel="NLL", title=recipe, xticks=[1, 5, 30])
        axes.set_xticklabels(["1", "5", "30"])
    lines = {line.get_label(): line for axes in all_axes[0] for line in axes.get_lines()}  # the same in both
    figure.legend(lines.values(), lines.keys(), loc="lower center", ncols=2, fontsize=8, frameon=False)
    figure.subplots_adjust(bottom=0.28, wspace=0.25)
    return figure
