"""Measures how scene cuts are found, and what finding them changes in the frames after a cut.

    python -m steadyseg.studies.cuts.measure ../shared/data

Writes docs/studies/cuts/record.json; parts that are there already are kept. 25 minutes on one core.
"""

import argparse
import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from steadyseg.app.executors import RunOptions, executor
from steadyseg.app.open_model import open_model, resolve_method
from steadyseg.core.cuts import CutDetector
from steadyseg.core.frame import Frame
from steadyseg.core.method import MethodOptions
from steadyseg.core.segmenter import Segmenter
from steadyseg.seg.evaluate import enlarge
from steadyseg.studies.cuts.clips import (
    MOTORWAYS,
    PART_FRAMES,
    PLACES,
    STREETS,
    Scene,
    fade,
    joined,
    lit_drive,
    motorway,
    street_scene,
    val_stream,
)
from steadyseg.studies.harness.networks import rests_on
from steadyseg.studies.harness.study import PAGES, Cache, data_digest, origin

DRIVES = range(3000, 3010)
DRIVE_SECONDS = 60
NETWORKS = ("street-tiny", "camvid-realtime")
METHODS = {"tau 8, motion": MethodOptions(), "tau 1.25": MethodOptions(tau=1.25, motion=False)}
AFTER = 5
"""Frames after a cut whose NLL is compared."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with camvid/ and video/")
    data = parser.parse_args().data
    cache = Cache(PAGES / "cuts" / "record.json")
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "joined": lambda: joined_clips(data),
        "continuous": lambda: continuous_clips(data),
        "lit drives": lit_drives,
        "other changes": other_changes,
        **{name: partial(after_cuts, name, data) for name in NETWORKS},
    }
    frames = data_digest(data / "camvid")
    for name, measure in parts.items():
        digest = cuts_digest(name, frames) if name in NETWORKS else "1"
        if cache.get(name, digest) is None:
            cache.put(name, digest, measure(), {"command": "python -m steadyseg.studies.cuts.measure DATA", **origin()})
            print(name, cache.record[name]["rows"], flush=True)


def cuts_digest(name: str, data: str) -> str:
    """The digests of the data and of the weights, and the temperatures of both methods."""
    return rests_on(name, data, *METHODS.values())


def cuts_of(images: Iterable[np.ndarray]) -> list[int]:
    """Numbers of the frames before which a cut is found."""
    detector = CutDetector()
    return [number for number, image in enumerate(images) if detector(image, 1 if number else 0)]


def joined_clips(data: Path) -> dict[str, Any]:
    """Cuts found at their frame, by kind of the two scenes, and cuts found elsewhere."""
    real = [val_stream(data), *(motorway(data, name) for name in MOTORWAYS)]
    generator = np.random.default_rng(0)
    counts: dict[str, Counter[str]] = {}
    for kind, clips in {
        "streets of other seeds": different_streets(generator),
        "two places of one street": [[street_scene(seed, place) for place in PLACES] for seed in STREETS],
        "val and motorways": [[real[i][s : s + PART_FRAMES] for i, s in picks(real, generator)] for _ in range(40)],
        "street and real": mixed(real, generator),
    }.items():
        counts[kind] = Counter()
        for scenes in clips:
            frames, starts = joined(scenes)
            found = set(cuts_of(frame.image for frame in frames))
            counts[kind].update(cuts=len(starts), found=len(found & starts), elsewhere=len(found - starts))
    return {kind: dict(count) for kind, count in counts.items()}


def different_streets(generator: np.random.Generator) -> list[list[Scene]]:
    order = generator.permutation(list(STREETS))
    return [[street_scene(int(seed), int(generator.integers(5000))) for seed in order] for _ in range(3)]


def picks(real: list[Scene], generator: np.random.Generator) -> list[tuple[int, int]]:
    """The three real clips in random order, each with a random start."""
    return [(int(i), int(generator.integers(len(real[i]) - PART_FRAMES))) for i in generator.permutation(len(real))]


def mixed(real: list[Scene], generator: np.random.Generator) -> list[list[Scene]]:
    clips = []
    for seed in STREETS:
        (which, start), *_ = picks(real, generator)
        clips.append([street_scene(seed, 700), real[which][start : start + PART_FRAMES]])
    return clips


def continuous_clips(data: Path) -> dict[str, Any]:
    """Cuts found in real clips that have none."""
    clips = {"val": val_stream(data), **{name: motorway(data, name) for name in MOTORWAYS}}
    return {
        name: {"frames": len(scene), "found": len(cuts_of(image for image, _ in scene))}
        for name, scene in clips.items()
    }


def lit_drives() -> dict[str, Any]:
    """Cuts found in drives with flashes and tunnels, by the light of the frame, and the minutes driven."""
    found: Counter[str] = Counter(flash=0, tunnel=0, plain=0)
    for seed in DRIVES:
        detector = CutDetector()
        for number, (image, light) in enumerate(lit_drive(seed, DRIVE_SECONDS)):
            found[light] += detector(image, 1 if number else 0)
    return {"minutes": len(DRIVES) * DRIVE_SECONDS / 60, "found": dict(found)}


def other_changes() -> dict[str, Any]:
    """Cuts found in fades of 25 frames, repeated frames, and where 10 frames are lost unannounced."""
    seeds = list(STREETS)[:20]
    streets = [street_scene(seed, 300, 25) for seed in seeds]
    fades = [fade(a, b) for a, b in itertools.pairwise(streets)]
    repeated = [[scene[0][0], scene[1][0], scene[1][0], scene[2][0]] for scene in streets]
    lost = [[scene[0][0], scene[11][0]] for scene in streets]
    return {
        name: {"clips": len(clips), "found": sum(len(cuts_of(clip)) for clip in clips)}
        for name, clips in (("fade", fades), ("repeated frame", repeated), ("10 frames lost", lost))
    }


def after_cuts(model: str, data: Path) -> dict[str, Any]:
    """NLL of the first frames after a cut, with the cut found and not, by method; the scenes are unseen or val's."""
    if model == "street-tiny":
        scenes = [street_scene(seed, place) for seed in list(STREETS)[:20] for place in PLACES[:2]]
    else:
        val, road = val_stream(data), motorway(data, MOTORWAYS[0])
        starts = range(0, len(val) - PART_FRAMES, 5)
        scenes = [part for start in starts for part in (road[start : start + 10], val[start : start + PART_FRAMES])]
    frames, cuts = joined(scenes)
    return {
        name: {kind: nll_after(model, options, frames, cuts, kind == "found") for kind in ("found", "not found")}
        for name, options in METHODS.items()
    }


def nll_after(model: str, options: MethodOptions, frames: list[Frame], cuts: set[int], find: bool) -> dict[str, Any]:
    """Mean NLL of the labelled frames 0 to 4 after each cut, and the number of cuts of labelled scenes."""
    opened = open_model(model)
    method = resolve_method(opened, options)
    segmenter = Segmenter(executor(opened, method, RunOptions(keep_probs=True)), find_cuts=find)
    losses: list[list[float]] = [[] for _ in range(AFTER)]
    last = 0
    for frame in frames:
        last = frame.index if frame.index in cuts else last
        maps = segmenter.step(frame)
        age = frame.index - last
        if last and age < AFTER and frame.label is not None and maps.probs is not None:
            losses[age].append(nll(maps.probs, frame.label, len(segmenter.classes)))
    return {"cuts": len(losses[0]), "nll": [float(np.mean(values)) for values in losses]}


def nll(probs: np.ndarray, label: np.ndarray, classes: int) -> float:
    """Mean over the pixels that have a label."""
    grown = enlarge(torch.from_numpy(probs)[None], label.shape)[0].numpy()
    of_label = np.take_along_axis(grown, np.minimum(label, classes - 1)[None].astype(np.int64), 0)[0]
    return float(-np.log(np.maximum(of_label[label < classes], 1e-12)).mean())


if __name__ == "__main__":
    main()
