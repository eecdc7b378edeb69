"""Runs every network over every picture once and keeps features and scores in OUT/NETWORK/GROUP.pickle. Resumable by
group.

python -m steadyseg.studies.familiarity.collect --data data camvid-unet-s road-realtime
"""

import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from steadyseg.core.method import MethodOptions
from steadyseg.studies.familiarity.by_network import flags, save
from steadyseg.studies.familiarity.samples import GROUPS, Data, Sample
from steadyseg.studies.familiarity.watched_network import WatchedNetwork, measure_sample
from steadyseg.studies.harness.networks import digest_of, name_of, rests_on


def subsampled(samples: Iterator[Sample], every: int) -> Iterator[Sample]:
    """Only each `every`-th picture, with all versions of it."""
    places: dict[str, int] = {}
    return (sample for sample in samples if places.setdefault(sample.name, len(places)) % every == 0)


def familiarity_digest(model: str, data: str) -> str:
    """The digests of the data, of the weights and of the familiarity statistics, and the temperatures of single frames
    and of the default mean."""
    return rests_on(model, data, MethodOptions(mode="dnn"), MethodOptions(mode="vq-dnn"), familiarity=True)


def begin(folder: Path, about: dict[str, Any]) -> None:
    """Deletes what was collected of other weights or pictures in the folder, which would pass for this network's."""
    path = folder / "about.pickle"
    if not path.exists() or pickle.loads(path.read_bytes()) != about:
        for file in folder.glob("*.pickle"):
            file.unlink()
    save(path, about)


def main() -> None:
    parser = flags(__doc__)
    parser.add_argument("--every", type=int, default=1, help="stride over the pictures of a group")
    given = parser.parse_args()
    models = {given.out / name_of(model): model for model in given.models}
    torch.set_num_threads(1)
    data, watched = Data(given.data), {folder: WatchedNetwork(model) for folder, model in models.items()}
    for folder, one in watched.items():
        model = models[folder]
        about = {"weights": digest_of(model), "rests_on": familiarity_digest(model, data.digest)}
        begin(folder, {"every": given.every, "familiarity": one.meta.familiarity, **about})
    for group, samples_of in GROUPS.items():
        missing = [folder for folder in watched if not (folder / f"{group}.pickle").exists()]
        if not missing:
            continue
        started = time.perf_counter()
        rows: dict[Path, list[dict[str, Any]]] = {folder: [] for folder in missing}
        for sample in subsampled(samples_of(data), given.every):
            for folder in missing:
                rows[folder].append(measure_sample(watched[folder], sample))
        for folder in missing:
            save(folder / f"{group}.pickle", rows[folder])
        print(f"{group}: {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
