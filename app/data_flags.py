"""The flags of `steadyseg data`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional


@dataclass(frozen=True)
class DataJob:
    """What is fetched, and where to."""

    name: Positional[Literal["camvid", "cifar10", "cifar100"]]
    """Which data set."""
    root: Path | None = None
    """Folder to put it in; CamVid, cifar10 or cifar100 here without it."""
    connections: int | None = None
    """Parallel downloads of camvid's many files, 8 without it."""
