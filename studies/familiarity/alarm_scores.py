"""Scores of every frame of the streams of the study of alarms, kept in OUT/NETWORK/alarm.pickle. Resumable by stream.

    python -m steadyseg.studies.familiarity.alarm_scores --data data camvid-realtime camvid-unet-s camvid-mobile

All networks of a command see a stream together.
"""

import pickle
import time
from collections.abc import Sequence

import numpy as np
import torch

from steadyseg.core.model.checkpoint import read_meta
from steadyseg.runtime.open_model import find_model
from steadyseg.studies.familiarity.alarm_streams import Stream, streams
from steadyseg.studies.familiarity.by_network import flags, save
from steadyseg.studies.familiarity.samples import Data
from steadyseg.studies.familiarity.watched_network import WatchedNetwork
from steadyseg.studies.harness.networks import name_of, rests_on


def main() -> None:
    given = flags(__doc__).parse_args()
    torch.set_num_threads(1)
    data, kept, networks = Data(given.data), {}, {}
    for model in given.models:
        path, digest = given.out / name_of(model) / "alarm.pickle", alarm_digest(model, data.digest)
        kept[path] = pickle.loads(path.read_bytes()) if path.exists() else {}
        if kept[path].get("rests_on") != digest:
            kept[path] = {"rests_on": digest, "familiarity": read_meta(find_model(model)).familiarity, "streams": {}}
        networks[path] = WatchedNetwork(model)
    for name, stream in streams(data).items():
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
    """The digests of the data, of the weights and of the familiarity statistics."""
    return rests_on(model, data, familiarity=True)


def scores(networks: Sequence[WatchedNetwork], stream: Stream) -> np.ndarray:
    """(N, 1 + networks): index and scores of every frame; a picture that returns is looked at once."""
    rows: list[list[float]] = []
    seen: dict[int, tuple[np.ndarray, list[float]]] = {}  # it holds the pictures, so that no number is used again
    for index, image in stream:
        if id(image) not in seen:
            seen[id(image)] = image, [float(network(image)[0][1]) for network in networks]
        rows.append([index, *seen[id(image)][1]])
    return np.array(rows)


if __name__ == "__main__":
    main()
