"""Scores of every frame of the streams of the study of alarms, kept in OUT/NETWORK/alarm.pickle. Resumable by stream.

    python -m steadyseg.studies.novelty.alarm_scores --data ../shared/data street-tiny
    python -m steadyseg.studies.novelty.alarm_scores --data ../shared/data camvid-realtime camvid-unet-s camvid-mobile

All networks of a command see a stream together. A network of the street gets its novelty statistics here, from streets,
as `calibrate --familiarity` fits them on a drive. Its reference has pictures of its training, as the references of the
included networks of CamVid have.
"""

import dataclasses
import pickle
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from steadyseg.app.open_model import find_model
from steadyseg.core.corruptions.camera_changes import random_camera
from steadyseg.core.dropout import set_dropout_active
from steadyseg.core.model.checkpoint import read_meta
from steadyseg.core.novelty.features import FeatureExtractor, read_statistics
from steadyseg.core.novelty.gaussians import GaussianSums
from steadyseg.core.novelty.head import NoveltyHead
from steadyseg.core.novelty.record import NoveltyRecord, Scale, novelty_tensors
from steadyseg.core.novelty.statistics import FrameDistance, pooled, score_weights, subsample, subsampling_step
from steadyseg.core.preprocess import network_size
from steadyseg.seg.novelty.fit import CAMERAS, default_stages
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.studies.harness.networks import name_of, rests_on
from steadyseg.studies.novelty.alarm_streams import (
    STREET,
    Stream,
    camvid_streams,
    street_domain,
    street_streams,
    trained_streets,
)
from steadyseg.studies.novelty.by_network import flags, is_copy_of, is_of_streets, save
from steadyseg.studies.novelty.novelty_network import NoveltyNetwork
from steadyseg.studies.novelty.samples import Data, drawing


def main() -> None:
    given = flags(__doc__).parse_args()
    torch.set_num_threads(1)
    data, kept, networks = Data(given.data), {}, {}
    for model in given.models:
        folder = given.out / name_of(model)
        is_street = is_of_streets(model)
        known = knowing_streets(model, folder) if is_street else find_model(model)
        path, digest = folder / "alarm.pickle", alarm_digest(model, data.digest)
        kept[path] = pickle.loads(path.read_bytes()) if path.exists() else {}
        if kept[path].get("rests_on") != digest:
            kept[path] = {"rests_on": digest, "novelty": read_meta(known).novelty, "streams": {}}
        networks[path] = NoveltyNetwork(known)
        if is_street and "trained" not in kept[path]:
            pictures = enumerate(with_cameras(trained_streets(), CAMERAS))
            kept[path]["trained"] = sorted(scores([networks[path]], pictures)[:, 1].tolist())
            save(path, kept[path])
    for name, stream in (street_streams if is_street else camvid_streams)(data).items():
        lacking = [path for path in networks if name not in kept[path]["streams"]]
        if not lacking:
            continue
        started = time.perf_counter()
        rows = scores([networks[path] for path in lacking], stream())
        for column, path in enumerate(lacking):
            kept[path]["streams"][name] = rows[:, [0, 1 + column]]
            save(path, kept[path])
        print(f"{name}: {len(rows)} frames, {time.perf_counter() - started:.0f} s", flush=True)


def alarm_digest(model: str, data: str) -> str:
    """The digests of the data and of the weights, and of the novelty statistics where they are the checkpoint's."""
    return rests_on(model, data, novelty=not is_of_streets(model))


def scores(networks: Sequence[NoveltyNetwork], stream: Stream) -> np.ndarray:
    """(N, 1 + networks): index and scores of every frame; a picture that returns is looked at once."""
    rows: list[list[float]] = []
    seen: dict[int, tuple[np.ndarray, list[float]]] = {}  # it holds the pictures, so that no number is used again
    for index, image in stream:
        if id(image) not in seen:
            seen[id(image)] = image, [float(network(image)[0][2]) for network in networks]
        rows.append([index, *seen[id(image)][1]])
    return np.array(rows)


def knowing_streets(model: str, folder: Path) -> Path:
    """A copy of the checkpoint with novelty statistics of streets; one temperature for all frames."""
    path = folder / "knowing.safetensors"
    if is_copy_of(path, model):
        return path
    opened = read_segmenter(model)
    network = opened.network().to(memory_format=torch.channels_last)
    set_dropout_active(network, False)
    stages, size = default_stages(network), network_size(*STREET, opened.meta.height)
    extractor = FeatureExtractor(network, opened.meta, stages, torch.device("cpu"))
    trained, unseen = street_domain()
    sums: list[GaussianSums] = []
    for image in with_cameras(trained, 1):
        _, features = extractor(image[None], size)
        steps = [subsampling_step(size[0], one) for one in features]
        means = [pooled(subsample(one, step)) for one, step in zip(features, steps, strict=True)]
        sums = sums or [GaussianSums(one.shape[1], 1) for one in means]
        for total, mean in zip(sums, means, strict=True):
            total.update(mean, torch.zeros(1, dtype=torch.long))
    distances = [FrameDistance.of(one.fit()) for one in sums]
    head, weights = NoveltyHead.without_scale(stages, steps, distances), score_weights(len(stages))
    found = [read_statistics(head, *extractor(image[None], size)) for image in with_cameras(unseen, CAMERAS)]
    rows, energies = (torch.cat(part) for part in zip(*found, strict=True))
    scale = Scale.of(rows, energies.flatten(), weights)
    even = {"slopes": [0.0] * len(weights), "level": 0.0}
    record = dataclasses.asdict(NoveltyRecord.of(head, scale, weights, even, {}))
    tensors = {**opened.tensors, **novelty_tensors(stages, distances)}
    folder.mkdir(parents=True, exist_ok=True)
    opened.with_record(dataclasses.replace(opened.meta, novelty=record), tensors).save(path)
    return path


def with_cameras(images: Iterator[np.ndarray], cameras: int) -> Iterator[np.ndarray]:
    """Yields each picture unchanged, and then as each of the simulated cameras would record it."""
    for number, image in enumerate(images):
        yield image
        yield from (random_camera(image, drawing("street", number, camera)) for camera in range(cameras))


if __name__ == "__main__":
    main()
