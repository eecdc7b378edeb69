"""The loop over the networks of a study of labelling: measured parts are kept."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from steadyseg.core.method import MethodOptions
from steadyseg.studies.harness.networks import rests_on
from steadyseg.studies.harness.study import PAGES, Cache, data_digest, origin


def measure_missing(module: str, record: str, networks: Mapping[str, str], measure: Callable[[str, Path], Any]) -> None:
    """Measures the parts that docs/studies/labelling/RECORD lacks; `networks`: the network of each part.

    The command line of `python -m steadyseg.studies.labelling.MODULE` names the CamVid folder, which `measure` gets
    after the part.
    """
    parser = argparse.ArgumentParser(description=f"Measures docs/studies/labelling/{record}.")
    parser.add_argument("data", type=Path, help="CamVid folder")
    data = parser.parse_args().data
    torch.set_num_threads(1)
    cache, frames = Cache(PAGES / "labelling" / record), data_digest(data)
    for part, name in networks.items():
        digest = labelling_digest(name, frames)
        if cache.get(part, digest) is None:
            about = {"command": f"python -m steadyseg.studies.labelling.{module} DATA", **origin()}
            cache.put(part, digest, measure(part, data), about)
            print(part, cache.record[part]["rows"], flush=True)


def labelling_digest(name: str, data: str) -> str:
    """The digests of the data and of the weights, and the temperature of single frames."""
    return rests_on(name, data, MethodOptions(mode="dnn"))
