"""`steadyseg data import` and `steadyseg data export`: labels of any origin into a data folder, and out of it."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from steadyseg.app.console import Console, figure_table, progress_bar, track
from steadyseg.app.contact_sheet import SHEET_FILE, Cell, colored, strip, write_sheet
from steadyseg.app.labelling.flags import ImportJob, LabelExportJob
from steadyseg.app.sources.open_source import open_source
from steadyseg.app.sources.source import require_end
from steadyseg.app.video.sinks import GREY, TABLE
from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.system.file_names import Names
from steadyseg.core.system.files import require_new_folder, whole_folder
from steadyseg.seg.data.class_file import classes_of, read_classes
from steadyseg.seg.data.formats.open_source import open_labels
from steadyseg.seg.data.formats.source import NOTES_FILE, SPLITS
from steadyseg.seg.data.import_labels import Imported, import_labels
from steadyseg.seg.data.label_folder import has_split, open_split, read_label
from steadyseg.seg.data.label_writer import LabelWriter

SHOWN_REMARKS = 10
PICTURES = 12
"""Pictures of train on a contact sheet."""
Pair = tuple[str, str, Path | np.ndarray, np.ndarray]
"""A picture and its label: file name, split or an empty text, file or (H, W, 3) uint8 RGB, (H, W) uint8 ids."""


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
            allows=job.allows,
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
    split = open_split(root, "train", classes_of(root, None)).spaced(PICTURES)
    if split.is_coarse:  # shown by the labels' own classes
        split = replace(split, classes=classes, read=read_label)
    cells = []
    for number, example in enumerate(split.examples):
        image, label = split[number]
        cells.append(Cell(example.name, strip(image, colored(image, label, classes))))
    write_sheet(root / SHEET_FILE, cells, classes)


def run_export(job: LabelExportJob) -> int:
    """Writes the pictures and their labels, and prints the way back."""
    require_new_folder(job.output, [job.source, *filter(None, [job.images])], overwrite=job.overwrite)
    classes, count, pairs = (masks_of if (job.source / TABLE).is_file() else labels_of)(job)
    with whole_folder(job.output, replace=job.overwrite) as folder:
        labels = LabelWriter(classes.names, job.labels)
        for name, split, image, ids in track(pairs, "pictures", count):
            place = Path("images", split, name)
            labels.add(place.as_posix(), ids, split=split)
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            if isinstance(image, Path):
                shutil.copyfile(image, folder / place)
            else:
                Image.fromarray(image).save(folder / place)
        labels.write(folder)
    print(f"{count} labelled pictures in {job.output}; read them back by: steadyseg data import {job.output} -o own")
    return 0


def labels_of(job: LabelExportJob) -> tuple[ClassList, int, Iterator[Pair]]:
    """Returns the classes of a data folder, the number of its pictures, and the pictures of all splits."""
    splits = [split for split in SPLITS if has_split(job.source, split)]
    if not splits:
        raise InputError(f"{job.source}: no data folder (as train/, trainannot/), nor one of `video --masks` ({TABLE})")
    if job.images:
        raise InputError(f"--images {job.images}: is for masks; the data folder {job.source} has its own pictures")
    classes = classes_of(job.source, None)
    found = [open_split(job.source, split, classes).require_ids("data export") for split in splits]
    pairs = (
        (example.image.name, of.split, example.image, of[place][1])
        for of in found
        for place, example in enumerate(of.examples)
    )
    return classes, sum(map(len, found)), pairs


def masks_of(job: LabelExportJob) -> tuple[ClassList, int, Iterator[Pair]]:
    """Returns the classes of a folder of masks, the number of masks, and the masks with their pictures."""
    classes = read_classes(job.source / TABLE)
    masks = {path.stem: path for path in job.source.glob("*.png") if not path.name.endswith(GREY)}
    if job.images is None:
        raise InputError(f"{job.source}: masks without pictures; name the source that was segmented by --images")
    source = open_source(job.images)
    require_end(source)

    def pairs() -> Iterator[Pair]:
        left, known = dict(masks), Names(masks)
        with source:
            for frame in source:
                fit = known.find(source.frame_name(frame.index))
                if len(fit) == 1 and (path := left.pop(fit[0], None)):
                    ids = read_label(path, classes)
                    if ids.shape != frame.image.shape[:2]:
                        raise InputError(f"{path}: has another size than its picture; is {job.images} its source?")
                    yield path.name, "", frame.image, ids
                if not left:
                    return
        raise InputError(f"{min(left.values())}: {job.images} has no picture of this name; is it the masks' source?")

    return classes, len(masks), pairs()
