"""The mean over time, and the network on some frames alone: on CamVid's val stream, moving stills and a drawn drive.

    python -m steadyseg.studies.results.every --data data/camvid [--fresh]

All rows of a network share its passes; `steadyseg bench` has their speeds. Three minutes on two idle cores; rows of the
same weights and data are kept.
"""

import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.app.evaluation.evaluate_segmenter import ExpectedMetrics
from steadyseg.core.frame import Frame, FrameScores
from steadyseg.core.method import MethodOptions
from steadyseg.core.motion import MotionEstimator
from steadyseg.core.options import Every
from steadyseg.core.segmenter import Segmenter, segment
from steadyseg.core.system.machine import cpu_name
from steadyseg.runtime.choose import RunOptions, backend
from steadyseg.runtime.every import carried
from steadyseg.runtime.networks import FrameNetwork
from steadyseg.runtime.open_model import open_checkpoint, resolve_method
from steadyseg.seg.data.label_folder import VAL_FPS, ImageFolderSplit, open_split
from steadyseg.seg.data.moving_stills import CLIP_FRAMES, moving_stills, seed_of, still_clip
from steadyseg.seg.evaluate import FrameMetrics
from steadyseg.street.drive import Street
from steadyseg.studies.harness.networks import rests_on
from steadyseg.studies.harness.panels import legend_below, new_figure, write_figure
from steadyseg.studies.harness.study import PAGES, Cache, data_digest, origin, run_command
from steadyseg.studies.harness.tables import read_record, table

Sources = dict[str, tuple[str, ...]]
SOURCES: Sources = {
    **dict.fromkeys(("val, 15 Hz", "moving stills, 15 Hz"), ("road-mobile", "road-realtime", "road-quality")),
    **dict.fromkeys(("drawn drive 7, 30 Hz", "drawn drive 8, 30 Hz"), ("street-mobile", "road-realtime")),
}
"""By source its networks. The drawn drives, named by their seeds, chose nothing."""
FITTED: Sources = {
    "clips of train": ("road-mobile", "road-realtime"),
    **dict.fromkeys(("street 11", "street 12"), ("street-mobile",)),
}
TESTED: Sources = {
    "clips of test": ("road-mobile",),
    "val": ("road-mobile", "road-realtime"),
    "street 7": ("street-mobile",),
}
"""Sources of `LOST_A_FRAME`: clips and val with 15 frames/s, drawn streets with 25."""
STEP, DRAWN = 7, 60
"""Every so many stills of test has a clip; frames of a drawn drive."""
MOVING = ("Car", "Pedestrian", "Bicyclist")
SINGLE, ARITHMETIC = MethodOptions(mode="dnn"), MethodOptions(average="arithmetic")
GEOMETRIC = MethodOptions(average="geometric")
ROWS: dict[str, tuple[MethodOptions, Every]] = {
    "single frames": (SINGLE, 1),
    "arithmetic mean": (ARITHMETIC, 1),
    "geometric mean": (GEOMETRIC, 1),
    "geometric, every 2": (GEOMETRIC, 2),
    "geometric, every 3": (GEOMETRIC, 3),
    "geometric, every 3, coarse flow": (GEOMETRIC, 3),
    "geometric, every 3, held still": (GEOMETRIC, 3),
    "geometric, auto": (GEOMETRIC, "auto"),
}
"""The method of each row and the frames that have the network; all at the temperature of single frames."""
SPARSE = ("geometric mean", *(f"geometric, {every}" for every in ("every 2", "every 3", "auto")))
SPEEDS = dict(zip(SPARSE, ("vq_dnn_motion", "every_2", "every_3", "every_auto"), strict=True))
"""The rows of docs/records/performance that have the frames a second of a rule."""
KEYS = ("accuracy", "miou", "nll", "ece", "consistency")
HEADER = (
    "network frames rule with_the_network frames/s accuracy,_% mIoU,_% IoU_of_cars pedestrians bicyclists NLL ECE,_% "
    "labels_that_change,_% promised_minus_true,_points the_same,_carried_frames"
)


def run(data: Path, fresh: bool) -> None:
    record = measured("every.json", SOURCES, data, fresh, measure)
    draw(record, PAGES / "results" / "every.png")
    measured("carried.json", FITTED | TESTED, data, fresh, lost_by_age)


def measured(
    file: str, sources: Sources, data: Path, fresh: bool, rows: Callable[[str, Iterable[Frame]], dict[str, Any]]
) -> dict[str, Any]:
    """The record in a file, after the rows of each network on each source that it lacks."""
    cache, digest = Cache(PAGES / "results" / file), data_digest(data)
    for source, networks in sources.items():
        for name in networks:
            job, rests = f"{name} on {source}", rests_on(name, digest)
            if fresh or cache.get(job, rests) is None:
                cache.put(job, rests, rows(name, frames_of(source, data)), {**origin(), "cpu": cpu_name()})
                print(f"{job}: done", flush=True)
    return cache.record


def frames_of(source: str, data: Path) -> Iterator[Frame]:
    """The labelled frames of a source."""
    if source.startswith("drawn"):
        return Street(seed=int(source.split(",")[0].split()[-1]), fps=30).frames(DRAWN)
    if source.startswith("val"):
        return open_split(data, "val").frames()
    kind, _, which = source.rpartition(" ")
    if kind == "street":
        return Street(seed=int(which)).frames(84)
    if kind == "clips of":
        return clips(open_split(data, which))
    stills = open_split(data, "test")
    return moving_stills(stills.subset([example.name for example in stills.examples[::STEP]]))


def clips(split: ImageFolderSplit) -> Iterator[Frame]:
    """Clips of a virtual camera from 20 stills, every frame with its label."""
    for place, number in enumerate(range(0, len(split), len(split) // 20)[:20]):
        seed = seed_of(split.examples[number].name)
        for age, (image, label) in enumerate(still_clip(*split[number], split.classes.void_id, seed)):
            yield Frame(image, CLIP_FRAMES * place + age, age / VAL_FPS, label, discontinuity=not age)


class HeldStill(MotionEstimator):
    """Finds no motion; what looks different still counts less."""

    def flow(self, previous: np.ndarray, now: np.ndarray) -> np.ndarray:
        return np.zeros((*now.shape, 2), np.float32)


FLOWS: dict[str, Callable[[], MotionEstimator]] = {"coarse flow": MotionEstimator, "held still": HeldStill}
"""Carried maps have the fine flow in all other rows."""


class OneNetwork:
    """A network that all rows share: it computes each picture once, and keeps the logits of all."""

    def __init__(self, network: FrameNetwork) -> None:
        self._network, self.backend = network, network.backend
        self._known = dict[bytes, tuple[list[np.ndarray], FrameScores | None]]()
        self.scores: FrameScores | None = None

    def passes(self, picture: np.ndarray, count: int) -> Iterator[np.ndarray]:
        key = picture.tobytes()
        if key not in self._known:
            logits = [one.copy() for one in self._network.passes(picture, count)]
            self._known[key] = logits, self._network.scores
        logits, self.scores = self._known[key]
        yield from logits


class Shared(dict[Any, Any]):
    """Gives all segmenters one network."""

    def __call__(self, key: Any, make: Any) -> Any:
        return self[key] if key in self else self.setdefault(key, OneNetwork(make()))


def measure(name: str, frames: Iterable[Frame]) -> dict[str, dict[str, Any]]:
    model, take, rows, pictures = open_checkpoint(name), Shared(), {}, list(frames)
    temperature, classes = SINGLE.resolve(model.meta).temperature, model.meta.classes
    for row, (options, every) in ROWS.items():
        method = dataclasses.replace(options.resolve(), temperature=temperature, calibrated=True)
        segmenter = Segmenter(carried(backend(model, method, RunOptions(keep_probs=True), take), every))
        if flow := FLOWS.get(row.rpartition(", ")[2]):
            segmenter._estimate_motion = flow()
        metrics, promised = FrameMetrics.of(classes), [ExpectedMetrics(classes.void_id) for _ in range(2)]
        for frame, maps in segment(pictures, segmenter):
            promised[maps.network].update(frame, maps)
            metrics.update(dataclasses.replace(frame, image=frame.image[::2, ::2], label=half(frame.label)), maps)
        found = metrics.result()
        rows[row] = (
            {key: found[key] for key in KEYS}
            | {f"iou of {rare}": found["iou"][classes.names.index(rare)] for rare in MOVING}
            | {f"promised, {kind}": mean_gap(one) for kind, one in zip(("carried", "network"), promised, strict=True)}
            | {"network": segmenter.network_frames / len(pictures), "backend": segmenter.backend}
        )
    return rows


def lost_by_age(name: str, frames: Iterable[Frame]) -> dict[str, Any]:
    """1 - r / r', of the right pixels r of maps that were carried so many frames and r' of the network on each frame:
    the mean at each age, and the slope of the line through zero."""
    model, take, losses = open_checkpoint(name), Shared(), list[tuple[int, float]]()
    method, void = resolve_method(model, MethodOptions()), model.meta.classes.void_id
    each = Segmenter(backend(model, method, RunOptions(), take))
    some, age = Segmenter(carried(backend(model, method, RunOptions(), take), CLIP_FRAMES)), 0
    for frame in frames:
        maps, others, kept = some.step(frame), each.step(frame), frame.label != void
        age = 0 if maps.network else age + 1
        if age:
            right, best = ((one.label == frame.label)[kept].sum() for one in (maps, others))
            losses.append((age, float(1 - right / best)))
    ages, values = np.array(losses).T
    means = [round(float(values[ages == age].mean()), 5) for age in range(1, CLIP_FRAMES)]
    return {"lost": means, "a_frame": round(float(ages @ values / (ages @ ages)), 5), "frames": len(losses)}


def carried_table() -> str:
    """The loss by source and age, in percent."""
    lines = []
    for job, found in read_record("results", "carried.json").items():
        (name, _, source), rows = job.partition(" on "), found["rows"]
        losses = [percent(loss) for loss in (*rows["lost"], rows["a_frame"])]
        lines.append([f"`{name}`", source, "fit" if source in FITTED else "test", *losses])
    return table(["network", "frames", "used for", *(f"age {age}" for age in range(1, CLIP_FRAMES)), "a frame"], lines)


def mean_gap(promised: ExpectedMetrics) -> float | None:
    """Mean of the expected accuracy minus the accuracy; None without frames."""
    return float(np.mean(promised.gaps)) if promised.gaps else None


def half(label: np.ndarray | None) -> np.ndarray | None:
    """Every second row and column, a quarter of the work of the metrics."""
    return None if label is None else np.ascontiguousarray(label[::2, ::2])


def every_table() -> str:
    """Quality by rule, a line for each network, source and row."""
    lines, speeds = [], read_record("performance", "every.json")
    for job, found in read_record("results", "every.json").items():
        network, _, source = job.partition(" on ")
        timed = speeds[network]["rows"] if network in speeds else {}
        for rule, row in found["rows"].items():
            speed = f"{timed[SPEEDS[rule]]['frames_per_s']:.0f}" if timed and rule in SPEEDS else "-"
            cells = [percent(row[key]) for key in ("accuracy", "miou", *(f"iou of {name}" for name in MOVING))]
            cells += [f"{row['nll']:.4f}", percent(row["ece"]), percent(1 - row["consistency"])]
            cells += [percent(row[f"promised, {kind}"]) for kind in ("network", "carried")]
            lines.append([f"`{network}`", source, rule, f"{row['network']:.0%}", speed, *cells])
    return table([word.replace("_", " ") for word in HEADER.split()], lines)


def percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f}"


def draw(record: dict[str, Any], path: Path) -> None:
    """What is lost over the share of frames that have the network, in points, for each network and source."""
    figure, axes = new_figure(3, 3.4, 3.4)
    for axis, key in zip(axes, ("accuracy", "miou", f"iou of {MOVING[1]}"), strict=True):
        for job, found in record.items():
            rows, best = found["rows"], found["rows"]["geometric mean"][key]
            points = sorted((100 * rows[rule]["network"], 100 * (rows[rule][key] - best)) for rule in SPARSE)
            axis.plot(*zip(*points, strict=True), marker="o", label=job)
        axis.set(title=key.replace("iou", "IoU"), xlabel="% of the frames with the network")
    axes[0].set(ylabel="points against every frame")
    legend_below(figure, axes)
    write_figure(path, figure, dpi=130)


if __name__ == "__main__":
    sys.exit(run_command("every", __doc__, run))
