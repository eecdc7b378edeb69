"""`steadyseg data`: fetches a data set with a progress bar."""

from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from seg import camvid_download


def run_download(name: str, root: Path, connections: int) -> int:
    """Fetches; `name` is camvid so far."""
    console = Console(stderr=True)
    console.print(camvid_download.LICENCE_NOTE)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[size]}"), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(name, total=None, size="")

        def show(done: int, total: int, size: int) -> None:
            progress.update(task, completed=done, total=total, size=f"{size / 1e6:.1f} MB")

        report = camvid_download.download_camvid(root, connections=connections, on_progress=show)
    print(f"{root}: {report.files} files, {report.fetched} fetched, {report.kept} already there")
    return 0
