"""`steadyseg data camvid`, `cifar10` and `cifar100`: fetch a data set."""

from functools import partial
from pathlib import Path

from steadyseg.app.console import Console, progress_bar
from steadyseg.app.data_sets import FetchJob
from steadyseg.classification.data import cifar
from steadyseg.seg.data import camvid_download

CONNECTIONS = 8


def fetch_camvid(job: FetchJob) -> int:
    """`steadyseg data camvid`."""
    root = job.output or Path("CamVid")
    console = Console(stderr=True)
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
    library, root = cifar.LIBRARIES[name], job.output or Path(name)
    Console(stderr=True).print(cifar.SOURCE_NOTE)
    done = "fetched" if cifar.download_cifar(library, root, cifar.SHA256[name]) else "already there"
    print(f"{root / library.base_folder}: {len(cifar.published(library))} files, {done}")
    return 0


fetch_cifar10, fetch_cifar100 = partial(fetch_cifar, "cifar10"), partial(fetch_cifar, "cifar100")
