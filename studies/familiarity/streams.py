"""Familiarity and expected accuracy over a stream whose scene is cut: val, motorway 1, a camera over photographs, val.

python -m steadyseg.studies.familiarity.streams --data data camvid-unet-s road-realtime
"""

from collections.abc import Iterator
from typing import Any

import torch

from steadyseg.core.classes import CAMVID
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame
from steadyseg.core.method import MethodOptions
from steadyseg.runtime.open_model import open_segmenter
from steadyseg.studies.familiarity.by_network import flags, save
from steadyseg.studies.familiarity.samples import Data, Sample, motorways, objects, of_split
from steadyseg.studies.harness.networks import name_of

HZ = 15.0
CUTS = (("town", 40), ("motorway", 40), ("photographs", 36), ("town", 61))


def cut_stream(data: Data) -> Iterator[tuple[str, Sample]]:
    """Frames of the cut stream, each with the name of its part."""
    towns = [Sample("town", name, image, label) for name, image, label in of_split(data, "val", list(range(101)))]
    parts = {
        "motorway": [sample for sample in motorways(data) if sample.kind == "motorway 1"],
        "photographs": [sample for sample in objects(data) if sample.kind == "moving photographs"],
    }
    for name, count in CUTS:
        shown = towns if name == "town" else parts[name]
        yield from ((name, sample) for sample in shown[:count])
        del shown[:count]


def watch_cuts(model: str, data: Data) -> list[dict[str, Any]]:
    """Familiarity and expected accuracy by frame, and accuracy where there are labels; default method of the page."""
    segmenter, rows = open_segmenter(model, MethodOptions(mode="vq-dnn")), []
    if segmenter.reference is None:
        raise InputError(f"{model}: has no statistics of familiarity; use steadyseg calibrate --familiarity")
    for place, (name, sample) in enumerate(cut_stream(data)):
        maps = segmenter.step(Frame(sample.image, place, place / HZ))
        row: dict[str, Any] = {"of": name, "familiarity": maps.familiarity, "expected_accuracy": maps.expected_accuracy}
        if sample.label is not None:
            kept = sample.label != CAMVID.void_id
            row["accuracy"] = float((maps.label == sample.label)[kept].mean())
        rows.append(row)
    return rows


def main() -> None:
    given = flags(__doc__).parse_args()
    torch.set_num_threads(1)
    for model in given.models:
        save(given.out / name_of(model) / "streams.pickle", {"cuts": watch_cuts(model, Data(given.data))})


if __name__ == "__main__":
    main()
