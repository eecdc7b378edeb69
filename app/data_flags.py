"""The flags of `steadyseg data`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg


@dataclass(frozen=True)
class DataJob:
    """A data set and the folder to put it into."""

    name: Positional[Literal["camvid", "cifar10", "cifar100"]]
    """Name of the data set."""
    output: Annotated[Path | None, arg(aliases=["-o"])] = None
    """Folder to put it into; by default CamVid, cifar10 or cifar100 in the current folder."""
