"""The segmentation checkpoints that come with the package, and the function that reads a checkpoint."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from steadyseg.core.model.model import Builder, Model, find_in, list_checkpoints, read_model
from steadyseg.seg.options import NetworkName

if TYPE_CHECKING:
    from torch import nn

FOLDER = Path(__file__).parent / "checkpoints"


def list_segmenters() -> list[str]:
    """Names of the pretrained checkpoints, sorted."""
    return list(list_checkpoints(FOLDER))


def find_checkpoint(model: str | Path) -> Path:
    """The file of a pretrained name, or the path itself; InputError lists the known names."""
    return find_in(model, FOLDER)


def read_segmenter(name: str | Path) -> Model:
    """Reads a segmentation checkpoint by its pretrained name or its path; InputError for anything else."""
    return read_model(name, (FOLDER,), BUILDERS)


def build_trained(architecture: str, options: dict[str, Any], classes: int) -> "nn.Module":
    """Builds a network whose weights are in a file: pretrained weights of an encoder are not fetched."""
    from steadyseg.seg.networks.build import build_network  # torch

    begun_with = {"encoder_weights": None} if "encoder_weights" in options else {}
    return build_network(architecture, options | begun_with, classes)


BUILDERS: dict[str, Builder] = {name: partial(build_trained, name) for name in get_args(NetworkName)}
