"""`steadyseg data`: fetches a data set with a progress bar."""

from pathlib import Path

from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from app.console import Console
from app.data_flags import FetchJob
from classification.data import cifar_download
from seg.data import camvid_download

CONNECTIONS = 8


def fetch_camvid(job: FetchJob) -> int:
    """`steadyseg data camvid`."""
    root = job.output or Path("CamVid")
    console = Console(stderr=True)
    console.print(camvid_download.LICENCE_NOTE)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[size]}"), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("camvid", total=None, size="")

        def show(done: int, total: int, size: int) -> None:
            progress.update(task, completed=done, total=total, size=f"{size / 1e6:.1f} MB")

        report = camvid_download.download_camvid(root, connections=CONNECTIONS, on_progress=show)
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
    with Progress(BarColumn(), DownloadColumn(), TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task(name, total=archive.bytes)

        def show(there: int, total: int) -> None:
            progress.update(task, completed=there, total=total)

        report = cifar_download.download_cifar(archive, root, on_progress=show)
    done = f"{report.fetched_bytes / 1e6:.1f} MB fetched" if report.fetched_bytes else "already there"
    print(f"{report.folder}: {len(archive.files)} files, {done}")
    return 0
