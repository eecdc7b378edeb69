"""`steadyseg data import`: labels of any origin become a data folder, with a table of shares and a contact sheet."""

from rich.table import Table

from app.console import Console
from app.contact_sheet import SHEET_FILE, write_contact_sheet
from app.data_flags import ImportJob
from app.progress import progress_bar
from core.errors import InputError, refuse_existing
from seg.data.formats.open_source import open_labels
from seg.data.import_labels import NOTES_FILE, Imported, import_labels

SHOWN_REMARKS = 10


def run_import(job: ImportJob) -> int:
    """Imports the labels; prints the shares, the first remarks and the next commands."""
    for flag, share in (("--val", job.val), ("--test", job.test), ("--val and --test together", job.val + job.test)):
        if not 0 <= share < 1:
            raise InputError(f"{flag} must be a share in [0, 1), got {share}")
    refuse_existing(job.output, job.overwrite)
    if not job.output.absolute().parent.is_dir():
        raise InputError(f"{job.output}: there is no folder {job.output.parent}; make it first")
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
    table = Table(title=f"{kind}: {counted}; shares of the labelled pixels", title_justify="left")
    table.add_column("class")
    for split in imported.pictures:
        table.add_column(split, justify="right")
    names, pixels = imported.classes.names, imported.pixels.values()
    for number, name in enumerate(names):
        table.add_row(name, *(f"{of_split[number] / of_split[: len(names)].sum():.2%}" for of_split in pixels))
    table.add_row("void, of all pixels", *(f"{of_split[-1] / of_split.sum():.2%}" for of_split in pixels))
    Console().print(table)
