"""`steadyseg pick`: chooses frames of videos to label next, and writes them with the network's labels to correct."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from steadyseg.app.console import progress_bar, track
from steadyseg.app.contact_sheet import SHEET_FILE, SHOWN, Cell, colored, strip, write_sheet
from steadyseg.app.labelling.candidates import Candidate, FrameMeter, choose
from steadyseg.app.labelling.flags import PickJob
from steadyseg.app.labelling.shared import open_network, write_table
from steadyseg.app.sources.image_folder import FolderSource, list_images
from steadyseg.app.sources.open_source import open_source
from steadyseg.app.sources.source import Source, require_end
from steadyseg.app.video.render import draw_uncertainty
from steadyseg.core.classes import ClassList
from steadyseg.core.frame import Frame
from steadyseg.core.system.files import whole_folder
from steadyseg.core.system.pictures import read_upright
from steadyseg.seg.data.held_out import recording_of
from steadyseg.seg.data.label_writer import FORMATS, LabelWriter
from steadyseg.seg.selection import Chosen

TABLE_FILE, IMAGES, UNCERTAINTY = "frames.csv", "images", "uncertainty"
PER_CHOICE = 10
"""Candidates for each frame to choose, if a video has so many frames; a video's step between candidates is at most a
second."""
SHADES = {"uncertainty: 0": 0, "0.5": 127, "1: all equal": 255}
"""Entries of the sheet's legend: the uint8 uncertainty of each colour."""
Row = dict[str, Any]
"""A row of the table: rank, criteria, distance and reason of a frame."""


def run_pick(job: PickJob) -> int:
    """Measures the candidates, chooses, and reads the chosen frames again to write them: no frame stays in memory."""
    model = open_network(job)
    counts = list[int | None]()
    for spec in job.sources:  # all sources are checked before the first is measured
        with open_source(spec) as source:
            step, length = candidate_step(source, job.count), source.info.length
            counts.append(length and -(-length // step))
    total = None if None in counts else sum(filter(None, counts))
    paths, meter = list_images(job.data / "train") if job.data else (), FrameMeter(model)
    sources, recordings, candidates = list[int](), dict[tuple[int, str], int](), list[Candidate]()
    labelled = [meter.measure(read_upright(path))[0] for path in track(paths, "labelled pictures")] if paths else []
    with progress_bar("frames measured", total) as show:
        for number, spec in enumerate(job.sources):
            with open_source(spec) as source:
                step = candidate_step(source, job.count)
                for frame in source:
                    if frame.index % step == 0:
                        key = (number, recording_of(name_of(source, frame.index)))
                        features, criteria, _ = meter.measure(frame.image)
                        recording = recordings.setdefault(key, len(recordings))
                        candidates.append(Candidate(recording, frame.index, frame.time_s, features, criteria))
                        sources.append(number)
                        show(len(candidates))
    rows = {
        (sources[one.place], candidates[one.place].number): row_of(rank, one, candidates)
        for rank, one in enumerate(choose(candidates, job.count, labelled), 1)
    }
    with whole_folder(job.output, replace=job.overwrite) as folder:
        labels = LabelWriter(model.meta.classes.names, job.labels)
        chosen = track(chosen_frames(job.sources, rows), "frames written", len(rows))
        write_frames(folder, chosen, meter, model.meta.classes, labels)
    file = job.output / FORMATS[job.labels].file
    print(f"{len(rows)} of {len(candidates)} frames chosen; look at {job.output / SHEET_FILE}")
    again = f"steadyseg data import {file} --images {job.output / IMAGES} -o own"
    print(f"correct the labels of {file} in a label tool, then: {again}")
    return 0


def candidate_step(source: Source, count: int) -> int:
    """Returns the step between candidates: 1 in a folder of images. A video gives `PER_CHOICE` times `count`
    candidates, or one a second if those are more. InputError for a camera, which has no end."""
    require_end(source)
    info = source.info
    if isinstance(source, FolderSource):
        return 1
    second = max(1, round(info.fps))
    return second if info.length is None else min(second, max(1, info.length // (PER_CHOICE * count)))


def name_of(source: Source, index: int) -> str:
    """Returns the name of an image, or the video's name and the frame number. All label tools accept its letters."""
    name = source.frame_name(index)
    if not isinstance(source, FolderSource):
        name = f"{Path(source.info.name).stem}_{name}"
    return re.sub(r"[^\w.-]+", "-", name)


def row_of(rank: int, chosen: Chosen, candidates: Sequence[Candidate]) -> Row:
    """Returns the row of a chosen frame. Its reason is the criterion in which it ranks highest among all candidates, or
    its distance if all criteria put it in the lower half."""
    one = candidates[chosen.place]
    shares = {
        name: sum(other.criteria[name] >= value for other in candidates) / len(candidates)
        for name, value in one.criteria.items()
    }
    best = min(shares, key=shares.__getitem__)
    return {
        "rank": rank,
        "frame": one.number,
        "time_s": round(one.time_s, 3),
        **{name: round(value, 4) for name, value in one.criteria.items()},
        "distance": round(chosen.distance, 3) if math.isfinite(chosen.distance) else "",
        "reason": f"{best} in the highest {shares[best]:.0%} of the frames"
        if shares[best] <= 0.5
        else "unlike all that are labelled or chosen before",
    }


def chosen_frames(sources: Sequence[str], rows: Mapping[tuple[int, int], Row]) -> Iterator[tuple[str, str, Frame, Row]]:
    """Reads the videos a second time and yields each chosen frame as (unique name, video, frame, row)."""
    used = set[str]()
    for number, spec in enumerate(sources):
        last = max((index for of, index in rows if of == number), default=-1)
        with open_source(spec) as source:
            for frame in source if last >= 0 else ():
                if row := rows.get((number, frame.index)):
                    plain = name_of(source, frame.index)
                    names = chain([plain], (f"{copy}-{plain}" for copy in count(2)))
                    name = next(one for one in names if one not in used)
                    used.add(name)
                    yield name, source.info.name, frame, row
                if frame.index >= last:
                    break


def write_frames(
    folder: Path,
    frames: Iterator[tuple[str, str, Frame, Row]],
    meter: FrameMeter,
    classes: ClassList,
    labels: LabelWriter,
) -> None:
    """Writes images, labels and uncertainty of the frames, the table by rank, and the contact sheet of the first
    `SHOWN`."""
    for name in (IMAGES, UNCERTAINTY):
        (folder / name).mkdir()
    written, cells = dict[int, Row](), dict[int, Cell]()
    for name, video, frame, row in frames:
        _, _, maps = meter.measure(frame.image)
        file, rank = f"{IMAGES}/{name}.png", int(row["rank"])
        Image.fromarray(frame.image).save(folder / file)
        Image.fromarray(maps.entropy).save(folder / UNCERTAINTY / f"{name}.png")
        labels.add(file, maps.label, maps.confidence)
        written[rank] = {"rank": rank, "file": file, "video": video, **row}
        if rank <= SHOWN:
            pictures = frame.image, colored(frame.image, maps.label, classes), draw_uncertainty(maps.entropy)
            cells[rank] = Cell(f"{rank}. {name}: {row['reason']}", strip(*pictures))
    labels.write(folder)
    write_table(folder / TABLE_FILE, [written[rank] for rank in sorted(written)])
    shades = draw_uncertainty(np.array([list(SHADES.values())], np.uint8))[0].tolist()
    write_sheet(
        folder / SHEET_FILE,
        [cells[rank] for rank in sorted(cells)],
        classes,
        list(zip(SHADES, map(tuple, shades), strict=True)),
    )
