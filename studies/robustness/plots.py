"""The figures of the robustness studies: boxes over corruption types, NLL against passes, the sweep over bands, ..."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from steadyseg.studies.harness.panels import STYLES, legend_below, new_figure
from steadyseg.studies.robustness.report import band_kind, band_kinds, stream_gain, stream_mean, stream_title
from steadyseg.studies.robustness.tally import Row, title_of, titles_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = (("accuracy", "accuracy"), ("nll", "NLL, nats"), ("ece", "ECE"))


def draw_plots(record: dict[str, Any]) -> dict[str, "Figure"]:
    """The plots of the studies in the record, by file name; it begins with the study's name."""
    drawn = {}
    for study, name, draw in PLOTS:
        found = record["studies"].get(study)
        figure = draw(found) if found else None
        if figure is not None:
            drawn[name] = figure
    return drawn


def corruption_boxes(study: dict[str, Any]) -> "Figure":
    """At every severity a box for each network: quartiles over types, whiskers to the ends, as in arXiv 2105.12639."""
    titles, severities = titles_of(study["clean"]), study["severities"]
    panels = [*PANELS, *([("miou", "mIoU")] if "miou" in study["clean"][0] else [])]
    figure, axes = new_figure(len(panels))
    width = 0.8 / len(titles)
    for axis, (key, word) in zip(axes, panels, strict=True):
        for number, title in enumerate(titles):
            at = [place + (number - (len(titles) - 1) / 2) * width for place in range(1, len(severities) + 1)]
            values = [values_of(study["rows"], title, severity, key) for severity in severities]
            colour = f"C{number % 10}"
            axis.boxplot(
                values,
                positions=at,
                widths=0.85 * width,
                whis=(0, 100),
                manage_ticks=False,
                patch_artist=True,
                boxprops={"facecolor": colour, "alpha": 0.5},
                medianprops={"color": "black"},
            )
            clean = next(row[key] for row in study["clean"] if title_of(row) == title)
            axis.plot([(number - (len(titles) - 1) / 2) * width], [clean], "o", color=colour, label=title)
        axis.set_xticks(range(len(severities) + 1), ["clean", *map(str, severities)])
        axis.set_xlabel("severity")
        axis.set_ylabel(word)
    legend_below(figure, axes[:1])
    figure.suptitle(f"{len(study['types'])} types of corruption, {study['pictures']} pictures", fontsize=10)
    return figure


def values_of(rows: Sequence[Row], title: str, severity: int, key: str) -> list[float]:
    return [row[key] for row in rows if title_of(row) == title and row["severity"] == severity and row[key] is not None]


def nll_against_passes(study: dict[str, Any]) -> "Figure | None":
    """The mean NLL against dropout passes; None without a bnn method."""
    if not any(row["mode"] == "bnn" for row in study["means"]):
        return None
    key = "mean_nll"
    figure, (axis,) = new_figure(1, 5.0)
    for number, model in enumerate(dict.fromkeys(row["model"] for row in study["means"])):
        mine = [row for row in study["means"] if row["model"] == model and row[key] is not None]
        passes = [row for row in mine if row["mode"] == "bnn"]
        colour = f"C{number % 10}"
        if passes:
            axis.plot([row["samples"] for row in passes], [row[key] for row in passes], "o-", color=colour, label=model)
        for row in mine:
            if row["mode"] == "dnn":
                axis.axhline(row[key], linestyle="--", color=colour, label=f"{model}, dropout off")
    axis.set_xscale("log")
    counts = sorted({row["samples"] for row in study["means"] if row["mode"] == "bnn"})
    axis.set_xticks(counts, list(map(str, counts)))
    axis.minorticks_off()
    axis.set_xlabel("dropout passes")
    axis.set_ylabel("mean corrupted NLL, nats")
    axis.legend(fontsize=7)
    return figure


def stream_curves(study: dict[str, Any]) -> "Figure":
    """Accuracy and consistency against severity, and between them what averaging over time gains, type by type."""
    figure, axes = new_figure(3)
    levels = [0, *study["severities"]]
    places = range(len(levels))
    titles = list(dict.fromkeys(map(stream_title, study["rows"])))
    for axis, key in ((axes[0], "accuracy"), (axes[2], "consistency")):
        for title in titles:
            axis.plot(places, with_gaps(stream_mean(study, title, level, key) for level in levels), "o-", label=title)
        axis.set_ylabel(f"{key}, mean over types")
    for number, title in enumerate(title for title in titles if " vq-" in title):
        for colour, name in enumerate(study["types"]):
            gains = with_gaps(stream_gain(study, title, level, "accuracy", name) for level in levels)
            line = f"C{colour % 10}{STYLES[number % len(STYLES)]}"
            axes[1].plot(places, gains, line, label="" if number else name)
    axes[1].axhline(0.0, color="grey", linewidth=0.5)
    axes[1].set_ylabel("accuracy minus that of dnn")
    axes[1].set_title("a line style for each vq- method, in the order below", fontsize=7)
    axes[1].legend(fontsize=6)
    for axis in axes:
        axis.set_xticks(places, ["clean", *map(str, levels[1:])])
        axis.set_xlabel("severity")
    legend_below(figure, axes[:1])
    figure.suptitle(f"{study['frames']} frames of the val stream", fontsize=9)
    return figure


def with_gaps(values: Iterable[float | None]) -> list[float]:
    """With a gap in the line where there is no value."""
    return [math.nan if value is None else value for value in values]


def consistency_points(study: dict[str, Any]) -> "Figure":
    """By perturbation; points, as the axis does not begin at 0."""
    titles, names = titles_of(study["rows"]), study["perturbations"]
    figure, (axis,) = new_figure(1, 8.0)
    for number, title in enumerate(titles):
        found = [row["consistency"] for row in study["rows"] if title_of(row) == title]
        shift = 0.5 * (number - (len(titles) - 1) / 2) / len(titles)
        axis.plot([place + shift for place in range(len(names))], found, "o", label=title)
    axis.set_xticks(range(len(names)), names, rotation=30, ha="right", fontsize=8)
    axis.grid(axis="x", linewidth=0.3)
    axis.set_ylabel("consistency")
    legend_below(figure, [axis])
    return figure


def band_sweep(study: dict[str, Any]) -> "Figure":
    """The drop in accuracy against the band's centre, for noise and for attacks (arXiv 2202.06709, Fig. 2b)."""
    kinds = band_kinds(study)
    figure, axes = new_figure(len(kinds))
    for axis, kind in zip(axes, kinds, strict=True):
        mine = [row for row in study["rows"] if band_kind(row) == kind]
        for title in titles_of(mine):
            points = [(row["centre"], row["accuracy_drop"]) for row in mine if title_of(row) == title]
            axis.plot(*zip(*points, strict=True), "o-", label=title)
        axis.set_title(f"{kind}, one band of it", fontsize=9)
        axis.set_xlabel("centre of the band / pi")
        axis.set_ylabel("drop in accuracy")
        axis.axhline(0.0, color="grey", linewidth=0.5)
    legend_below(figure, axes[:1])
    return figure


def ood_boxes(study: dict[str, Any]) -> "Figure":
    """Box plots of the scores of the data and of out-of-distribution pictures, side by side."""
    rows = [row for row in study["rows"] if row["score"] in ("entropy", "disagreement")]
    figure, axes = new_figure(len(rows), 3.0)
    for axis, row in zip(axes, rows, strict=True):
        axis.boxplot([row["scores_data"], row["scores_ood"]], widths=0.6, whis=(0, 100))
        axis.set_xticks([1, 2], ["data", "OOD"])
        axis.set_title(f"{title_of(row)}\nAUROC {row['auroc']:.3f}", fontsize=8)
        axis.set_ylabel(f"mean {row['score']} / ln K")
    return figure


PLOTS: tuple[tuple[str, str, Callable[[dict[str, Any]], "Figure | None"]], ...] = (
    ("corruptions", "corruptions", corruption_boxes),
    ("corruptions", "corruptions_passes", nll_against_passes),
    ("stream", "stream", stream_curves),
    ("perturbations", "perturbations", consistency_points),
    ("bands", "bands", band_sweep),
    ("ood", "ood", ood_boxes),
)
"""Study, file name, what draws it."""
