"""`steadyseg data`: fetches a data set, or makes a data folder of labels of any origin, with a table of shares and a
contact sheet."""

from functools import partial
from pathlib import Path

from steadyseg.app.console import Console, figure_table, progress_bar
from steadyseg.app.contact_sheet import SHEET_FILE, Cell, colored, strip, write_sheet
from steadyseg.app.data_flags import FetchJob, ImportJob
from steadyseg.classification.data import cifar
from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.system.files import require_new_folder
from steadyseg.seg.data import camvid_download
from steadyseg.seg.data.camvid import open_split
from steadyseg.seg.data.formats.open_source import open_labels
from steadyseg.seg.data.formats.source import NOTES_FILE
from steadyseg.seg.data.import_labels import Imported, import_labels

CONNECTIONS = 8
SHOWN_REMARKS = 10
PICTURES = 12
"""Pictures of train on a contact sheet."""


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


def run_import(job: ImportJob) -> int:
    """Imports the labels; prints the shares, the first remarks and the next commands."""
    for flag, share in (("--val", job.val), ("--test", job.test), ("--val and --test together", job.val + job.test)):
        if not 0 <= share < 1:
            raise InputError(f"{flag} must be a share in [0, 1), got {share}")
    inputs = [path for path in (job.source, job.images, job.palette) if path]
    require_new_folder(job.output, inputs, overwrite=job.overwrite)
    if job.images and not job.images.is_dir():
        raise InputError(f"{job.images}: no such folder; --images is the folder of the labelled pictures")
    source = open_labels(job.source, job.palette, job.overlaps)
    console = Console(stderr=True)
    with progress_bar("pictures", console=console) as show:
        imported = import_labels(
            source,
            job.images or (job.source.parent if job.source.is_file() else job.source),
            job.output,
            background=job.background,
            shares={"val": job.val, "test": job.test},
            skip_bad=job.skip_bad,
            overwrite=job.overwrite,
            on_picture=show,
        )
    write_contact_sheet(job.output, imported.classes)
    print_shares(source.format, imported)
    for remark in imported.remarks[:SHOWN_REMARKS]:
        console.print(remark, soft_wrap=True, highlight=False)
    if (more := len(imported.remarks) - SHOWN_REMARKS) > 0:
        console.print(f"{more} more remarks are in {job.output / NOTES_FILE}")
    print(f"look at {job.output / SHEET_FILE}, then: steadyseg train seg --data {job.output}")
    return 0


def print_shares(kind: str, imported: Imported) -> None:
    """Prints each class's share of the labelled pixels by split, and the share of void."""
    counted = ", ".join(f"{count} {split}" for split, count in imported.pictures.items())
    table = figure_table("class", *imported.pictures, title=f"{kind}: {counted}; shares of the labelled pixels")
    names, pixels = imported.classes.names, imported.pixels.values()
    for number, name in enumerate(names):
        table.add_row(name, *(f"{of_split[number] / of_split[: len(names)].sum():.2%}" for of_split in pixels))
    table.add_row("void, of all pixels", *(f"{of_split[-1] / of_split.sum():.2%}" for of_split in pixels))
    Console().print(table)


def write_contact_sheet(root: Path, classes: ClassList) -> None:
    """Writes root/contact-sheet.jpg with pictures of train, evenly spaced, beside their labels."""
    split = open_split(root, "train", classes).spaced(PICTURES)
    cells = []
    for number, example in enumerate(split.examples):
        image, label = split[number]
        cells.append(Cell(example.name, strip(image, colored(image, label, classes))))
    write_sheet(root / SHEET_FILE, cells, classes)
