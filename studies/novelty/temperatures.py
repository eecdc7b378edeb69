"""Calibration with the one fitted and with the frame's temperature: at home, over a stream, under corruptions.

    python -m steadyseg.studies.novelty.temperatures --data ../shared/data camvid-unet-s camvid-realtime camvid-mobile

Every picture passes each network once. The statistics of the frame and the logits of every fifth row and column are
kept in OUT/NETWORK/temperatures/GROUP.pickle, enough to judge any temperature. After
`calibrate --familiarity` the record is made again in a minute, without a pass. Resumable by group.
"""

import math
import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from steadyseg.core.classes import CAMVID
from steadyseg.core.corruptions.corruptions import BENCHMARK_CORRUPTIONS, corrupt
from steadyseg.core.method import MethodOptions
from steadyseg.core.model.model import Model
from steadyseg.core.novelty.stored import novelty_head
from steadyseg.core.preprocess import enlarge, nearest
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.studies.harness.bundle import round_figures
from steadyseg.studies.harness.networks import digest_of, name_of, rests_on
from steadyseg.studies.harness.study import PAGES, origin, read_record_file, write_record
from steadyseg.studies.novelty.by_network import flags, save
from steadyseg.studies.novelty.calibration import binned, ece, expected_error, judge, reliability
from steadyseg.studies.novelty.collect import begin
from steadyseg.studies.novelty.novelty_network import NoveltyNetwork
from steadyseg.studies.novelty.samples import Data, Sample, of_split, spread_over

Row = dict[str, Any]
COMMAND = "python -m steadyseg.studies.novelty.temperatures --data ../shared/data"
TYPES = ("clean", "gaussian_noise", "motion_blur", "fog", "brightness", "jpeg_compression")
"""Conditions of the stream."""
STILLS, SEVERITIES = 60, (1, 3, 5)
TURNS = 3
STEP = 5
"""Rows and columns between the pixels whose logits are kept: 6,912 of a frame."""
SINGLE, PUBLISHED = MethodOptions("dnn", adaptive=True), MethodOptions("vq-dnn", motion=False, adaptive=True)
"""The mean over time of the published rule is of each pixel alone, so it can be computed from the kept pixels."""


def home(data: Data) -> Iterator[Sample]:
    """All stills of test, unchanged."""
    yield from (Sample("clean", *one) for one in of_split(data, "test", list(range(len(data.split("test"))))))


def stream(kind: str, data: Data) -> Iterator[Sample]:
    """The val stream, unchanged or under one type at severity 3."""
    for place, (name, image, label) in enumerate(of_split(data, "val", list(range(len(data.split("val")))))):
        yield Sample(kind, name, image if kind == "clean" else corrupt(image, kind, 3, 3, place), label)


def corrupted(kind: str, turn: int, data: Data) -> Iterator[Sample]:
    """60 stills of test, spread evenly, under one type, each at one severity; in three turns it meets all three."""
    places = spread_over(len(data.split("test")), STILLS)
    for number, (place, (name, image, label)) in enumerate(zip(places, of_split(data, "test", places), strict=True)):
        severity = SEVERITIES[(number + turn) % len(SEVERITIES)]
        yield Sample(f"{kind} {severity}", name, corrupt(image, kind, severity, 0, place), label)


GROUPS: dict[str, Callable[[Data], Iterator[Sample]]] = {
    "home": home,
    **{f"stream {kind}": partial(stream, kind) for kind in TYPES},
    **{f"{kind} {turn}": partial(corrupted, kind, turn) for turn in range(TURNS) for kind in BENCHMARK_CORRUPTIONS},
}


def measure_sample(network: NoveltyNetwork, sample: Sample) -> Row:
    """Statistics and kept logits of a picture, with its labels."""
    assert sample.label is not None
    (logits, deviations, *_), size = network(sample.image)
    head, kept = network.outputs.head, (..., slice(STEP // 2, None, STEP), slice(STEP // 2, None, STEP))
    label = nearest(torch.from_numpy(sample.label)[None], size)[0]
    return {
        "kind": sample.kind,
        "name": sample.name,
        "statistics": (deviations * head.deviation + head.mean)[0].numpy(),
        "grid": enlarge(logits, size)[0][kept].flatten(1).half().numpy(),
        "label": label[kept].flatten().numpy().astype(np.uint8),
    }


def collect(models: Sequence[str], out: Path, data: Data) -> None:
    """Measures the groups of pictures that have no file yet. Each picture is made once and given to all networks."""
    networks = {out / name_of(model) / "temperatures": NoveltyNetwork(model) for model in models}
    for folder, model in zip(networks, models, strict=True):
        begin(folder, {"weights": digest_of(model), "data": data.digest})
    for group, samples in GROUPS.items():
        missing = {folder: one for folder, one in networks.items() if not (folder / f"{group}.pickle").exists()}
        rows: dict[Path, list[Row]] = {folder: [] for folder in missing}
        for sample in samples(data) if missing else ():
            for folder, network in missing.items():
                rows[folder].append(measure_sample(network, sample))
        for folder in missing:
            save(folder / f"{group}.pickle", rows[folder])
            print(group, flush=True)


def judge_ways(model: Model, rows: Sequence[Row], options: MethodOptions = SINGLE) -> Row:
    """NLL and ECE at each temperature of `WAYS`, accuracy, and the share of frames warmer than the fitted one."""
    method = options.resolve(model.meta)
    by_way = temperatures(model, rows, options)
    if method.tau:
        figures = {way: over_stream(rows, found, method.tau) for way, found in by_way.items()}
    else:
        figures = {way: judge(rows, found) for way, found in by_way.items()}
    warmer = float(np.mean(np.array(by_way["frame"]) > 1.0001 * method.temperature))
    return {"pictures": len(rows), "temperature": method.temperature, "warmer": warmer, **figures}


def temperatures(model: Model, rows: Sequence[Row], options: MethodOptions = SINGLE) -> dict[str, list[float]]:
    """Temperatures of pictures by `WAYS`; the product's head computes the frames' temperatures from the statistics."""
    method = options.resolve(model.meta)
    head = novelty_head(model, method)
    assert head is not None and method.adaptive, f"{model.name} has no statistics"
    _, own = head.read(torch.from_numpy(np.stack([row["statistics"] for row in rows])))
    return {"none": [1.0] * len(rows), "one": [method.temperature] * len(rows), "frame": own.tolist()}


def over_stream(rows: Sequence[Row], temperatures: Sequence[float], tau: float) -> dict[str, float]:
    """NLL and ECE of the published temporal mean over consecutive frames."""
    decay, mass, mean = math.exp(-1 / tau), 0.0, torch.zeros(())
    nll, table = 0.0, np.zeros((3, 10))
    for row, temperature in zip(rows, temperatures, strict=True):
        probs = torch.from_numpy(row["grid"].astype(np.float32).T / temperature).softmax(1)
        mass = 1.0 + decay * mass
        mean = mean + (probs - mean) / mass
        kept = torch.from_numpy(row["label"] != CAMVID.void_id)
        labels = torch.from_numpy(row["label"].astype(np.int64))[kept]
        nll -= float(mean[kept].gather(1, labels[:, None]).clamp_min(1e-12).log().sum())
        confidence, best = mean[kept].max(1)
        table += binned(confidence, best == labels)
    return {"nll": nll / float(table[0].sum()), "ece": ece(table)}


def temperatures_digest(name: str, data: str) -> str:
    """The digests of the data, of the weights and of the novelty statistics, and the temperatures of both methods."""
    return rests_on(name, data, SINGLE, PUBLISHED, novelty=True)


def measure(model: Model, folder: Path, digest: str) -> Row:
    """All figures of one network, from what was kept of its pictures."""

    def rows(group: str) -> list[Row]:
        return list(pickle.loads((folder / f"{group}.pickle").read_bytes()))

    changed = [row for kind in BENCHMARK_CORRUPTIONS for turn in range(TURNS) for row in rows(f"{kind} {turn}")]
    cells = {
        kind: {
            str(severity): [row for row in changed if row["kind"] == f"{kind} {severity}"] for severity in SEVERITIES
        }
        for kind in BENCHMARK_CORRUPTIONS
    }
    by_way, frames = temperatures(model, changed), [*rows("home"), *changed]
    return {
        "rests_on": digest,
        "warming": model.meta.novelty["warming"],
        "command": f"{COMMAND} {model.name}",
        **origin(),
        "home": judge_ways(model, rows("home")),
        "single": {kind: judge_ways(model, rows(f"stream {kind}")) for kind in TYPES},
        "stream": {kind: judge_ways(model, rows(f"stream {kind}"), PUBLISHED) for kind in TYPES},
        "corrupted": {kind: {key: judge_ways(model, cell) for key, cell in row.items()} for kind, row in cells.items()},
        "expected": {way: expected_error(frames, found) for way, found in temperatures(model, frames).items()},
        "reliability": {way: reliability(changed, found) for way, found in by_way.items()},
    }


def main() -> None:
    given = flags(__doc__).parse_args()
    torch.set_num_threads(1)
    data, models = Data(given.data), [read_segmenter(model) for model in given.models]
    collect(given.models, given.out, data)
    path = PAGES / "novelty" / "temperatures.json"
    record = read_record_file(path)
    for name, model in zip(given.models, models, strict=True):
        folder, digest = given.out / name_of(name) / "temperatures", temperatures_digest(name, data.digest)
        record[name_of(name)] = round_figures(measure(model, folder, digest))
    write_record(path, record)


if __name__ == "__main__":
    main()
