"""`steadyseg data`: fetches a data set with a progress bar."""

from pathlib import Path

from app.console import Console
from app.data_flags import FetchJob
from app.progress import progress_bar
from classification.data import cifar_download
from seg.data import camvid_download

CONNECTIONS, MB = 8, 10**6


def fetch_camvid(job: FetchJob) -> int:
    """`steadyseg data camvid`."""
    root = job.output or Path("CamVid")
    console = Console(stderr=True)
    console.print(camvid_download.LICENCE_NOTE)
    with progress_bar("camvid", console=console) as show:
        report = camvid_download.download_camvid(
            root,
            connections=CONNECTIONS,
            on_progress=lambda done, total, size: show(done, total, f"{size / 1e6:.1f} MB"),
        )
    print(f"{root}: {report.files} files, {report.fetched} fetched, {report.kept} already there")
    return 0


def fetch_cifar10(job: FetchJob) -> int:
    """`steadyseg data cifar10`."""
    return _fetch_cifar("cifar10", job.output or Path("cifar10"))


def fetch_cifar100(job: FetchJob) -> int:
    """`steadyseg data cifar100`."""
    return _fetch_cifar("cifar100", job.output or Path("cifar100"))


def _fetch_cifar(name: str, root: Path) -> int:
    archive = cifar_download.ARCHIVES[name]
    console = Console(stderr=True)
    console.print(cifar_download.SOURCE_NOTE)
    with progress_bar(name, archive.bytes // MB, console) as show:
        report = cifar_download.download_cifar(
            archive, root, on_progress=lambda there, total: show(there // MB, total // MB, "MB")
        )
    done = f"{report.fetched_bytes / 1e6:.1f} MB fetched" if report.fetched_bytes else "already there"
    print(f"{report.folder}: {len(archive.files)} files, {done}")
    return 0
