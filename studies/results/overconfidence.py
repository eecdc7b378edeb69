"""What over-confidence of the network does to each method: CamVid's val stream, logits divided by temperatures below 1.

    python -m steadyseg.studies.results.overconfidence --data data/camvid [--fresh]

The logits of a frame are computed once for all temperatures. As published, the mean has tau 1.25 frames and follows no
motion. Every second row and column counts. Intervals are over blocks of ten frames. Five minutes of one idle core.
"""

import sys
from collections.abc import Sequence
from itertools import accumulate, product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from steadyseg.core.dropout import set_dropout_active
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.evaluation.stretches import Stretches, count_stretch, intervals, split_evenly
from steadyseg.core.frame import Frame
from steadyseg.core.method import MethodOptions
from steadyseg.core.model.model import Model
from steadyseg.core.prediction import Prediction
from steadyseg.core.predictors import forward_passes
from steadyseg.core.preprocess import Normalize, resize
from steadyseg.core.seeds import mix_seed
from steadyseg.core.segmenter import Continuity
from steadyseg.core.system.machine import cpu_name, keep_freed_memory
from steadyseg.core.temporal import TemporalSmoothing
from steadyseg.seg.data.label_folder import open_split
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.studies.harness.networks import rests_on
from steadyseg.studies.harness.panels import new_figure, write_figure
from steadyseg.studies.harness.study import PAGES, Cache, data_digest, origin, run_command
from steadyseg.studies.harness.tables import read_record, table

NETWORK, PASSES, STEP, BLOCK = "camvid-unet-s", 10, 2, 10
TEMPERATURES = (1.0, 0.7, 0.5, 0.4, 0.3)
"""Beside the fitted one, which comes first."""
PUBLISHED_NLL = 0.354
"""Of the plain network, arXiv 1907.05911 and 2105.12639."""
ARITHMETIC, GEOMETRIC = TemporalSmoothing(1.25), TemporalSmoothing(1.25, geometric=True)
METHODS = ("plain", "VQ-DNN", "passes", "VQ-BNN", "geometric mean")
REPAIRED = {"plain, fitted": "plain", "geometric mean, fitted": "geometric mean"}
"""Methods at the fitted temperature, compared with plain frames at each temperature."""
Found = dict[tuple[str, float], list[StreamingMetrics]]
"""By method and temperature, the metrics of each block."""


def run(data: Path, fresh: bool) -> None:
    torch.set_num_threads(1)
    keep_freed_memory()
    cache, model = Cache(PAGES / "results" / "overconfidence.json"), read_segmenter(NETWORK)
    single = MethodOptions(mode="dnn")
    digest, fitted = rests_on(NETWORK, data_digest(data), single), single.resolve(model.meta).temperature
    if fresh or cache.get(NETWORK, digest) is None:
        found = measure(model, list(open_split(data, "val").frames()), (fitted, *TEMPERATURES))
        cache.put(NETWORK, digest, figures_of(found), {**origin(), "cpu": cpu_name(), "passes": PASSES})
    draw(PAGES / "results" / "overconfidence.png")


@torch.inference_mode()
def measure(model: Model, frames: Sequence[Frame], temperatures: Sequence[float], passes: int = PASSES) -> Found:
    """Walks once over labelled frames of the network's size: all temperatures and methods share the passes."""
    meta, network = model.meta, model.network().to(memory_format=torch.channels_last)
    normalize, divisor = Normalize(meta.mean, meta.std), torch.tensor(temperatures).view(-1, 1, 1, 1)
    found: Found = {(name, at): [] for name in METHODS for at in temperatures}
    states, continuity, starts = dict[str, Any](), Continuity(), {0, *accumulate(split_evenly(len(frames), BLOCK))}
    for place, frame in enumerate(frames):
        gap = continuity.gap_before(frame)
        pixels = torch.from_numpy(frame.image)[None].permute(0, 3, 1, 2)
        torch.manual_seed(mix_seed(0, place))
        plain, first, passed = members(network, normalize(resize(pixels, (meta.height, meta.width))), divisor, passes)
        now = {"plain": plain, "passes": passed}
        means = {"VQ-DNN": (ARITHMETIC, plain), "VQ-BNN": (ARITHMETIC, first), "geometric mean": (GEOMETRIC, plain)}
        for name, (rule, probs) in means.items():
            seen = Prediction(probs, probs.new_zeros(probs.shape[:1] + probs.shape[2:]))
            mean, states[name] = rule(seen, states.get(name) if gap else None, max(gap, 1))
            now[name] = mean.probs
        assert frame.label is not None
        label = torch.from_numpy(frame.label[::STEP, ::STEP].copy())[None]
        for (name, at), counted in found.items():
            if place in starts:
                counted.append(StreamingMetrics(len(meta.classes), meta.classes.void_id))
            counted[-1].update(now[name][list(temperatures).index(at)][None], label)
    return found


def members(network: Any, batch: Tensor, divisor: Tensor, passes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Probabilities (T, K, h / STEP, w / STEP) at each temperature: without dropout, of one pass, the mean of all."""

    def tempered(logits: Tensor) -> Tensor:
        return (logits[..., ::STEP, ::STEP].float().contiguous() / divisor).softmax(1)

    set_dropout_active(network, False)
    plain = tempered(network(batch))
    set_dropout_active(network, True)
    passed = (tempered(one) for one in forward_passes(network, batch, passes))
    first = next(passed)
    return plain, first, sum(passed, first) / passes


def figures_of(found: Found) -> dict[str, dict[str, Any]]:
    """By temperature and method [value, lower, upper]: NLL, ECE, and the change of the NLL against plain frames."""
    temperatures = list(dict.fromkeys(at for _, at in found))
    counts = {key: Stretches.read([count_stretch(one) for one in blocks]) for key, blocks in found.items()}
    losses = {key: torch.tensor([one.result()["nll"] for one in blocks]).double() for key, blocks in found.items()}
    pixels = torch.tensor([one.valid_samples for one in next(iter(found.values()))]).double()

    def all_figures(times: Tensor) -> dict[Any, Tensor]:
        nll = {key: times @ (loss * pixels) / (times @ pixels) for key, loss in losses.items()}
        made: dict[Any, Tensor] = {}
        for at, name in product(temperatures, (*METHODS, *REPAIRED)):
            key = (REPAIRED[name], temperatures[0]) if name in REPAIRED else (name, at)
            made[f"{at:g}", name, "nll"], made[f"{at:g}", name, "change"] = nll[key], nll[key] / nll["plain", at] - 1
            made[f"{at:g}", name, "ece"] = counts[key].figures(times)["ece"]
        return made

    rows: dict[str, dict[str, Any]] = {}
    for (at, name, what), told in intervals(len(pixels), all_figures).items():
        rows.setdefault(at, {}).setdefault(name, {})[what] = list(told)
    return rows


def overconfidence_table() -> str:
    """A line for each temperature: plain frames, then the change of the NLL by each method, with intervals."""
    lines, others = [], (*METHODS[1:], *REPAIRED)
    for at, row in found_rows().items():
        plain = [f"{row['plain']['nll'][0]:.4f}", f"{100 * row['plain']['ece'][0]:.2f}"]
        changes = ([100 * value for value in row[name]["change"]] for name in others)
        lines.append([at, *plain, *("{:+.1f} ({:+.1f} to {:+.1f})".format(*change) for change in changes)])
    return table(["temperature", "plain frames: NLL", "ECE, %", *(f"{name}: NLL, %" for name in others)], lines)


def found_rows() -> dict[str, Any]:
    """The measured rows by temperature, the highest first."""
    (found,) = read_record("results", "overconfidence.json").values()
    return dict(sorted(found["rows"].items(), key=lambda row: -float(row[0])))


def draw(path: Path) -> None:
    """Change of the NLL by each method over the plain network's NLL, with intervals; the published network's NLL."""
    figure, (axis,) = new_figure(1, 6.4, 4.2)
    rows = list(found_rows().values())
    for name, mark in zip((*METHODS[1:], "plain, fitted"), "os^Dv", strict=True):
        change, low, high = 100 * torch.tensor([row[name]["change"] for row in rows]).T
        ends = torch.stack([change - low, high - change])
        axis.errorbar([row["plain"]["nll"][0] for row in rows], change, ends, marker=mark, capsize=2, label=name)
    axis.axvline(PUBLISHED_NLL, color="grey", linestyle="--", linewidth=1, label="published plain network")
    axis.axhline(0, color="black", linewidth=0.5)
    axis.set(xlabel="NLL of plain frames at temperatures 1.05 to 0.3", ylabel="change of the NLL, %")
    axis.legend(fontsize=8)
    write_figure(path, figure, dpi=130)


if __name__ == "__main__":
    sys.exit(run_command("overconfidence", __doc__, run))
