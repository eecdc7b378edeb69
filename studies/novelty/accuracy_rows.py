"""Novelty, expected accuracy and true accuracy of every frame of the streams of the statement about expected accuracy,
kept in OUT/NETWORK/accuracy.pickle. Resumable by stream.

    python -m steadyseg.studies.novelty.accuracy_rows --data ../shared/data camvid-realtime camvid-unet-s

The default method at three frames a second.
"""

import pickle
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch

from steadyseg.app.open_model import open_segmenter
from steadyseg.core.classes import CAMVID
from steadyseg.core.corruptions.corruptions import BENCHMARK_CORRUPTIONS, corrupt
from steadyseg.core.frame import Frame
from steadyseg.core.method import MethodOptions
from steadyseg.core.preprocess import nearest
from steadyseg.studies.harness.networks import name_of, rests_on
from steadyseg.studies.novelty.alarm_streams import HZ, motorway
from steadyseg.studies.novelty.by_network import flags, save
from steadyseg.studies.novelty.samples import CLIPS, CONTROLS, Data, of_split

STEP = 5
"""Frames of `HZ` between two that are looked at."""
Stream = Iterator[Frame]
Change = Callable[[np.ndarray, int], np.ndarray]


def streams(data: Data) -> dict[str, Callable[[], Stream]]:
    """By name `KIND: WHICH`."""
    return {
        "val: unchanged": partial(val, data, unchanged),
        **{f"corrupted val: {kind}": partial(val, data, corrupted(kind, 3, 0)) for kind in BENCHMARK_CORRUPTIONS},
        **{f"motorway: {clip}": partial(clip_frames, data, clip) for clip in CLIPS},
        **{f"val: {name}": partial(val, data, mildly(change)) for name, change in CONTROLS.items()},
    }


def unchanged(image: np.ndarray, _: int) -> np.ndarray:
    return image


def mildly(change: Callable[[np.ndarray], np.ndarray]) -> Change:
    return lambda image, _: change(image)


def corrupted(kind: str, severity: int, seed: int) -> Change:
    return lambda image, index: corrupt(image, kind, severity, seed, index)


def val(data: Data, change: Change) -> Stream:
    places = list(range(0, len(data.split("val")), STEP))
    for place, (_, image, label) in zip(places, of_split(data, "val", places), strict=True):
        changed = change(image, place)
        size = changed.shape[0], changed.shape[1]  # some codecs of other cameras have more lines
        yield Frame(changed, place, place / HZ, nearest(torch.from_numpy(label)[None], size)[0].numpy())


def clip_frames(data: Data, clip: str) -> Stream:
    for index, image in motorway(data, clip):
        yield Frame(image, index, index / HZ)


def look(model: str, stream: Stream) -> np.ndarray:
    """(N, 4): time in seconds, novelty, mean confidence and accuracy, NaN where there is none."""
    segmenter, rows = open_segmenter(model), []
    for frame in stream:
        maps = segmenter.step(frame)
        accuracy = np.nan
        if frame.label is not None:
            kept = frame.label != CAMVID.void_id
            accuracy = (maps.label == frame.label)[kept].mean()
        novelty = np.nan if maps.familiarity is None else maps.familiarity
        rows.append([frame.time_s, novelty, maps.confidence.mean() / 255, accuracy])
    return np.array(rows)


def accuracy_digest(model: str, data: str) -> str:
    """The digests of the data, of the weights and of the novelty statistics, and the temperature in use."""
    return rests_on(model, data, MethodOptions(), novelty=True)


def main() -> None:
    given = flags(__doc__).parse_args()
    torch.set_num_threads(1)
    data = Data(given.data)
    for model in given.models:
        folder, digest = given.out / name_of(model), accuracy_digest(model, data.digest)
        path = folder / "accuracy.pickle"
        kept = pickle.loads(path.read_bytes()) if path.exists() else {}
        if kept.get("rests_on") != digest:
            kept = {"rests_on": digest, "streams": {}}
        for name, stream in streams(data).items():
            if name in kept["streams"]:
                continue
            started = time.perf_counter()
            kept["streams"][name] = look(model, stream())
            save(path, kept)
            print(f"{model}, {name}: {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
