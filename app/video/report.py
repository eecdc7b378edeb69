"""The report of a stream: counts, times per stage, mean uncertainty, class shares, and metrics if there are labels."""

import time
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.table import Table

from steadyseg.app.console import Console
from steadyseg.app.sources.source import Source
from steadyseg.app.video.verdict import CAVEAT, describe_stream, marked, stream_verdict
from steadyseg.core.classes import ClassList
from steadyseg.core.frame import CLAIMS, Frame, Maps, Verdict
from steadyseg.core.method import mode_title
from steadyseg.core.reference import NOVEL
from steadyseg.core.segmenter import Segmenter
from steadyseg.runtime.label_metrics import LabelMetrics

METRIC_KEYS = tuple("nll accuracy miou iou ece ece_15 brier consistency label_consistency change_agreement".split())
FAMILIARITY_STEPS = 1000
"""Familiarity is counted in thousandths."""


@dataclass(frozen=True, eq=False)
class FrameFigures:
    """The values of one frame."""

    index: int
    """Source frame number from 0."""
    time_s: float
    """Presentation time in seconds from the start of the source."""
    confidence: float
    """Mean confidence over the pixels, 0..1."""
    entropy: float
    """Mean total uncertainty, as a share of ln K."""
    disagreement: float
    """Mean disagreement, as a share of ln K."""
    class_shares: np.ndarray
    """(K,) shares of the pixels."""
    familiarity: float | None
    """Familiarity of the frame (`core.reference`); None if the network has no statistics of its training domain."""
    expected_accuracy: float
    """Expected accuracy of the frame, which is fitted where `verdict` is one of `CLAIMS`."""
    verdict: Verdict
    """What is known about the frame's labels."""
    wall_ms: float
    """Milliseconds since the previous frame was done. The first frame counts from the start of the work."""


MANY_CUTS = 0.1
"""Share of the frames after a cut above which the report says so: films have 0.02 (a cut each 2 s), slides up to 1."""


class StreamReport:
    """Sums over the frames of a stream; memory does not grow with their number."""

    def __init__(self, classes: ClassList) -> None:
        self.classes = classes
        self.frames = 0
        self.means = {"mean_confidence": 0.0, "mean_entropy": 0.0, "mean_disagreement": 0.0}
        self.class_pixels = np.zeros(len(classes))
        self.metrics: LabelMetrics | None = None
        self.whole_frames = FamiliaritySummary()
        self.started = self.ended = time.perf_counter()

    def update(self, frame: Frame, maps: Maps) -> FrameFigures:
        """Adds one frame, and returns its values; a labelled frame also counts in the metrics."""
        self.frames += 1
        confidence, entropy, disagreement = means = tuple(
            float(shade.mean()) / 255 for shade in (maps.confidence, maps.entropy, maps.disagreement)
        )
        for key, mean in zip(self.means, means, strict=True):
            self.means[key] += mean
        shares = np.bincount(maps.label.ravel(), minlength=len(self.class_pixels)) / maps.label.size
        self.class_pixels += shares
        if frame.label is not None:
            self.metrics = self.metrics or LabelMetrics(self.classes)
            self.metrics.update(frame, maps)
        self.whole_frames.update(maps)
        before, self.ended = self.ended, time.perf_counter()
        wall_ms = 1e3 * (self.ended - before)
        told = (maps.familiarity, maps.expected_accuracy, maps.verdict, wall_ms)
        return FrameFigures(frame.index, frame.time_s, confidence, entropy, disagreement, shares, *told)

    def record(self, segmenter: Segmenter, source: Source, notes: tuple[str, ...]) -> dict[str, Any]:
        """The report as JSON values: shares in 0..1, entropies as shares of ln K, times in ms."""
        count = max(self.frames, 1)
        seconds = self.ended - self.started
        record: dict[str, Any] = {
            "frames": self.frames,
            "dropped": source.losses["dropped_newer_frame"],
            "losses": dict(source.losses),
            "resets": dict(segmenter.resets),
            "notes": list(notes),
            "network_frames": segmenter.network_frames,
            "width": source.info.width,
            "height": source.info.height,
            "source_fps": None if source.info.is_picture else source.info.fps,
            **asdict(segmenter.method),
            "fps": round(self.frames / seconds, 3) if seconds else 0.0,
            "stages": segmenter.clock.summary(),
            **{key: round(value / count, 4) for key, value in self.means.items()},
            "training_data": segmenter.training_data,
            **self.whole_frames.record(segmenter.error),
            "class_shares": dict(zip(self.classes.names, (self.class_pixels / count).round(4).tolist(), strict=True)),
            "device": segmenter.device,
            "backend": segmenter.backend,
            "why_this_backend": segmenter.why,
        }
        if unknown := segmenter.resets["not_finite"]:
            record["notes"].append(
                f"{unknown} of {self.frames} frames had NaN or infinite logits: they are fully uncertain, and the mean "
                "over time leaves them out"
            )
        if (cuts := segmenter.resets["cut"]) > max(MANY_CUTS * self.frames, 2):
            record["notes"].append(
                f"{cuts} of {self.frames} frames begin another scene, as in a slide show: the mean over time begins "
                "anew at each of them, so it smooths little"
            )
        record |= {
            "verdict": describe_stream(record),
            **({"caveat": CAVEAT} if record["state"] in CLAIMS else {}),
        }
        if self.metrics and self.metrics.measurable:
            result = self.metrics.result()
            record |= {"labelled_frames": self.metrics.frames, **{key: result[key] for key in METRIC_KEYS}}
        return record


class FamiliaritySummary:
    """Summary of familiarity and expected accuracy over the frames."""

    def __init__(self) -> None:
        self.shares = np.zeros(FAMILIARITY_STEPS + 1, np.int64)
        self.frames = self.novel = 0
        self.verdicts: Counter[Verdict] = Counter()
        self.expected: defaultdict[Verdict, float] = defaultdict(float)
        """Sums of the expected accuracies."""

    def update(self, maps: Maps) -> None:
        """Adds one frame."""
        self.verdicts[maps.verdict] += 1
        self.expected[maps.verdict] += maps.expected_accuracy
        if maps.familiarity is not None:
            self.frames += 1
            self.novel += maps.familiarity <= NOVEL
            self.shares[round(maps.familiarity * FAMILIARITY_STEPS)] += 1

    def record(self, error: float | None) -> dict[str, Any]:
        """JSON values. `state` is the verdict on the file, `verdicts` has the share of the frames of each verdict.

        `expected_accuracy` is the mean over all frames with an answer. `error` of the fit gives its interval; None
        without a fit.
        """
        count = self.verdicts.total()
        answered = max(count - self.verdicts["no answer"], 1)
        shares = {verdict: round(frames / count, 4) for verdict, frames in self.verdicts.most_common()}
        told: dict[str, Any] = {
            "state": stream_verdict(shares),
            "verdicts": shares,
            "unlike_share": shares.get("unlike", 0.0),
            "expected_accuracy": round(expected := sum(self.expected.values()) / answered, 4),
        }
        if error is not None and any(one in shares for one in CLAIMS):
            ends = max(0.0, expected - error), min(1.0, expected + error)
            told["expected_accuracy_interval"] = [round(end, 4) for end in ends]
        if self.frames:
            told |= {
                "familiarity_p50": self._quantile(0.5),
                "familiarity_p05": self._quantile(0.05),
                "novel_frames": self.novel,
                "novel_share": round(self.novel / self.frames, 4),
            }
        return told

    def _quantile(self, share: float) -> float:
        """Quantile of the familiarity over the frames; a low value is a novel frame."""
        return int(np.searchsorted(np.cumsum(self.shares), share * self.frames)) / FAMILIARITY_STEPS


def figure_rows(record: dict[str, Any]) -> list[tuple[str, str]]:
    """(name, value) of the figures of every report, for the terminal and the page."""
    state, samples = record["state"], "1 sample" if record["samples"] == 1 else f"{record['samples']} samples"
    speed = ("speed", f"{record['fps']:.2f} frames/s")
    if record["source_fps"] is None and record["fps"]:
        speed = ("time", f"{1e3 / record['fps']:.0f} ms")
    network = [
        ("network", f"ran on {record['network_frames']} of {record['frames']} frames, the others have its maps, warped")
    ]
    return [
        (speed[0], f"{speed[1]} on {record['device']} ({record['backend']})"),
        *(network if record["network_frames"] != record["frames"] else []),
        ("method", f"{mode_title(record['mode'])}, {samples} per frame"),
        (marked("mean confidence", state), f"{record['mean_confidence']:.4f}"),
        ("mean uncertainty (entropy)", f"{record['mean_entropy']:.4f}"),
        ("mean disagreement", f"{record['mean_disagreement']:.4f}"),
    ]


def print_report(record: dict[str, Any]) -> None:
    """Prints the report as tables on stdout."""
    console = Console()
    table = Table(title=f"{record['source']}: {record['frames']} frames", title_justify="left", show_header=False)
    table.add_row("verdict", "\n".join((record["verdict"], *([f"({record['caveat']})"] if "caveat" in record else []))))
    for row in figure_rows(record):
        table.add_row(*row)
    table.add_row("calibrated", "yes" if record["calibrated"] else f"no: {record['note']}")
    table.add_row("dropped", str(record["dropped"]))
    for key in METRIC_KEYS:
        if isinstance(record.get(key), float):
            table.add_row(key, f"{record[key]:.4f}")
    for note in record["notes"]:
        table.add_row("note", note)
    console.print(table)
    stages = Table("stage", "p50 ms", "p95 ms")
    for name, times in record["stages"].items():
        stages.add_row(name, f"{times['latency_p50_ms']:.1f}", f"{times['latency_p95_ms']:.1f}")
    console.print(stages)
    shares = Table("class", marked("share", record["state"]))
    for name, share in sorted(record["class_shares"].items(), key=lambda item: -item[1]):
        shares.add_row(name, f"{share:.1%}")
    console.print(shares)
