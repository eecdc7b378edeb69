"""Runs one study over networks with novelty statistics, which are fitted first where a network has none; results lie in
OUT/NETWORK/STUDY.pickle."""

import argparse
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from steadyseg.app.cli import main as steadyseg
from steadyseg.app.open_model import find_model
from steadyseg.core.errors import CheckFailed
from steadyseg.core.model.checkpoint import read_meta
from steadyseg.studies.harness.bundle import round_figures
from steadyseg.studies.harness.networks import name_of
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.study import PAGES, digest_of_weights, read_record_file, write_record
from steadyseg.studies.novelty.samples import Data

OUT = Path("runs/novelty")
FITTED = ("--mode", "dnn", "--protocol", "stills")
"""Flags of `steadyseg calibrate`."""


def flags(about: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=OUT)
    return parser


def run(about: str, study: str, measure: Callable[[str, Data], Any]) -> None:
    """Applies `measure` (network file or name, data -> results) to each network of the command line."""
    given = flags(about).parse_args()
    torch.set_num_threads(1)
    for model in given.models:
        folder = given.out / name_of(model)
        save(folder / f"{study}.pickle", measure(knowing(model, folder, given.data), Data(given.data)))


def write_figures(about: str, study: str, record: str, measure: Callable[[Any], dict[str, Any]]) -> None:
    """Applies `measure` to the kept results of each network, OUT/NETWORK/STUDY.pickle, and writes its figures to
    docs/records/novelty/RECORD.json, in place of that network's earlier ones."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="folder", type=Path, default=OUT)
    folder = parser.parse_args().folder
    path = PAGES / "novelty" / f"{record}.json"
    found = {one.parent.name: measure(pickle.loads(one.read_bytes())) for one in folder.glob(f"*/{study}.pickle")}
    write_record(path, round_figures(read_record_file(path) | found), sort=True)
    write_page("novelty")


def knowing(model: str, folder: Path, data: Path) -> str:
    """The checkpoint itself where it has novelty statistics, else a copy that `steadyseg calibrate --familiarity` gave
    some."""
    if read_meta(find_model(model)).novelty:
        return model
    path = folder / "knowing.safetensors"
    if not is_copy_of(path, model):
        folder.mkdir(parents=True, exist_ok=True)
        given = ["--data", str(data / "camvid"), *FITTED, "--familiarity", "-o", str(path), "--overwrite"]
        if steadyseg(["calibrate", model, *given]):
            raise CheckFailed(f"{model} could not be calibrated")
    return str(path)


def is_copy_of(path: Path, model: str) -> bool:
    """True if the file has the weights of the model."""
    return path.exists() and digest_of_weights(path) == digest_of_weights(find_model(model))


def save(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_bytes(pickle.dumps(value))
    partial.rename(path)
