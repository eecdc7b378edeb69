"""The accuracy that maps lose for each frame that they are carried: the fit of `LOST_A_FRAME` (core/expected.py).

    python -m steadyseg.studies.results.carried --data data/camvid [--fresh]

The network runs on every seventh frame and, for comparison, on each. Of a frame with right pixels r where its maps were
carried, and r' where the network ran, 1 - r / r' is lost. Five minutes on two idle cores.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.core.frame import Frame, Maps
from steadyseg.core.method import MethodOptions
from steadyseg.core.segmenter import Segmenter
from steadyseg.core.system.machine import cpu_name
from steadyseg.runtime.choose import RunOptions, executor
from steadyseg.runtime.every import CarryingExecutor
from steadyseg.runtime.open_model import open_checkpoint, resolve_method
from steadyseg.seg.data.label_folder import open_split
from steadyseg.seg.data.moving_stills import seed_of, still_clip
from steadyseg.street.drive import Street
from steadyseg.studies.harness.networks import rests_on
from steadyseg.studies.harness.study import PAGES, Cache, data_digest, origin, run_command
from steadyseg.studies.harness.tables import read_record, table
from steadyseg.studies.results.every import OneNetwork

EVERY, CLIPS, DRAWN = 7, 20, 84
FITTED = {
    "clips of train": ("road-mobile", "road-realtime"),
    "street 11": ("street-mobile",),
    "street 12": ("street-mobile",),
}
TESTED = {"clips of test": ("road-mobile",), "val": ("road-mobile", "road-realtime"), "street 7": ("street-mobile",)}
"""Source -> its networks. Virtual cameras and val have 15 frames/s, drawn streets 25."""


def run(data: Path, fresh: bool) -> None:
    cache, digest = Cache(PAGES / "results" / "carried.json"), data_digest(data)
    for source, networks in {**FITTED, **TESTED}.items():
        for name in networks:
            job, rests = f"{name} on {source}", rests_on(name, digest)
            if fresh or cache.get(job, rests) is None:
                losses = list(lost(name, frames_of(source, data)))
                cache.put(job, rests, by_age(losses), {**origin(), "cpu": cpu_name()})
                print(f"{job}: done", flush=True)


def frames_of(source: str, data: Path) -> Iterator[Frame]:
    """The labelled frames of a source; each still gives a clip of seven frames."""
    kind, _, which = source.rpartition(" ")
    if kind == "street":
        yield from Street(seed=int(which)).frames(DRAWN)
    elif not kind:
        yield from open_split(data, "val").frames()
    else:
        split = open_split(data, which)
        chosen = range(0, len(split), len(split) // CLIPS)[:CLIPS]
        for place, number in enumerate(chosen):
            seed = seed_of(split.examples[number].name)
            for age, (image, label) in enumerate(still_clip(*split[number], split.classes.void_id, seed)):
                yield Frame(image, EVERY * place + age, age / 15, label, discontinuity=not age)


def lost(name: str, frames: Iterator[Frame]) -> Iterator[tuple[int, float]]:
    """(frames since the network's call, share of the right pixels that is lost) of each carried frame."""
    model, shared = open_checkpoint(name), dict[Any, OneNetwork]()
    method, void = resolve_method(model, MethodOptions()), model.meta.classes.void_id

    def take(key: Any, make: Any) -> Any:
        return shared[key] if key in shared else shared.setdefault(key, OneNetwork(make()))

    whole = Segmenter(executor(model, method, RunOptions(), take))
    some, age = Segmenter(CarryingExecutor(executor(model, method, RunOptions(), take), EVERY)), 0
    for frame in frames:
        maps, others = some.step(frame), whole.step(frame)
        age = 0 if maps.network else age + 1
        if age:
            yield age, 1.0 - right(maps, frame, void) / right(others, frame, void)


def right(maps: Maps, frame: Frame, void: int) -> float:
    assert frame.label is not None
    return float((maps.label == frame.label)[frame.label != void].mean())


def by_age(losses: Sequence[tuple[int, float]]) -> dict[str, Any]:
    """The mean loss at each age, and the slope of the line through zero."""
    ages, values = np.array(losses).T
    means = [round(float(values[ages == age].mean()), 5) for age in range(1, EVERY)]
    return {"lost": means, "a_frame": round(float(ages @ values / (ages @ ages)), 5), "frames": len(losses)}


def carried_table() -> str:
    """The loss by source and age, in percent."""
    lines = []
    for job, found in read_record("results", "carried.json").items():
        use = "fit" if any(job.endswith(f" on {source}") for source in FITTED) else "test"
        losses = (*found["rows"]["lost"], found["rows"]["a_frame"])
        lines.append([f"`{job.split()[0]}`", job.split(" on ")[1], use, *(f"{100 * loss:.2f}" for loss in losses)])
    return table(["network", "frames", "used for", *(f"age {age}" for age in range(1, EVERY)), "a frame"], lines)


if __name__ == "__main__":
    sys.exit(run_command("carried", __doc__, run))
