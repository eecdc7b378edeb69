"""`steadyseg pick`: chooses frames of videos to label next, and writes them with the network's labels to correct."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from app.console import progress_bar
from app.contact_sheet import SHEET_FILE
from app.labelling.candidates import Candidates, FrameMeter, Measured, gather, spaced
from app.labelling.flags import PickJob
from app.labelling.pick_files import LABELS_FILE, Pick, write_picks
from app.open_model import is_graph, open_checkpoint, refuse_classifier
from app.sources.image_folder import FolderSource, list_images
from app.sources.open_source import open_source
from app.sources.source import Source
from core.errors import InputError
from core.frame import Frame
from core.system.files import require_new_folder, whole_folder
from core.system.pictures import read_upright
from seg.data.held_out import recording_of
from seg.selection import Chosen


class Recording(NamedTuple):
    """Frames that follow each other in time: a video, or the images of a folder whose names share their beginning."""

    source: int
    """Place among the given videos."""
    name: str


def run_pick(job: PickJob) -> int:
    """Measures the candidates, chooses, and reads the chosen frames again to write them: no frame stays in memory."""
    require_new_folder(job.output, overwrite=job.overwrite)
    if job.count < 1:
        raise InputError(f"-n must be 1 or more, got {job.count}")
    if is_graph(job.model):
        raise InputError(f"{job.model}: a graph file does not give its features; give the checkpoint it was made from")
    for name in job.sources:  # all of them are refused before the first is measured
        with open_source(name) as source:
            spaced(source, job.count)
    model = open_checkpoint(job.model)
    refuse_classifier(model)
    meter = FrameMeter(model)
    labelled = list_images(job.data / "train") if job.data else ()
    recordings, rows = dict[Recording, int](), list[tuple[int, int, float, Measured]]()
    with progress_bar("frames measured") as show:
        known = [meter.measure(read_upright(path), place).features for place, path in enumerate(labelled)]
        for number, name, frame in candidates_of(job):
            recording = recordings.setdefault(Recording(number, recording_of(name)), len(recordings))
            rows.append((recording, frame.index, frame.time_s, meter.measure(frame.image, len(rows))))
            show(len(rows))
    candidates = gather(rows)
    chosen = candidates.choose(job.count, known)
    places = [recording.source for recording in recordings]
    picks = {
        (places[candidates.recordings[one.place]], int(candidates.indices[one.place])): explain(rank, one, candidates)
        for rank, one in enumerate(chosen, 1)
    }
    with whole_folder(job.output, replace=job.overwrite) as folder:
        write_picks(folder, chosen_frames(job, picks), meter, model.meta.classes)
    labels = job.output / LABELS_FILE
    print(f"{len(picks)} of {len(rows)} frames chosen; look at {job.output / SHEET_FILE}")
    print(f"correct the labels of {labels} in a label tool, then: steadyseg data import {labels} -o own")
    return 0


def candidates_of(job: PickJob) -> Iterator[tuple[int, str, Frame]]:
    """Yields (place of the video, name, frame) of every candidate."""
    for number, spec in enumerate(job.sources):
        with open_source(spec) as source:
            for frame in spaced(source, job.count):
                yield number, name_of(source, frame.index), frame


def chosen_frames(job: PickJob, picks: dict[tuple[int, int], Pick]) -> Iterator[tuple[str, str, Frame, Pick]]:
    """Reads the videos again and yields (file name, video, frame, pick) of the chosen frames; names are unique."""
    used = set[str]()
    for number, spec in enumerate(job.sources):
        last = max((index for of, index in picks if of == number), default=-1)
        with open_source(spec) as source:
            for frame in source if last >= 0 else ():
                if (pick := picks.get((number, frame.index))) is not None:
                    name = name_of(source, frame.index)
                    name = f"{number + 1}-{name}" if name in used else name
                    used.add(name)
                    yield name, source.info.name, frame, pick
                if frame.index >= last:
                    break


def name_of(source: Source, index: int) -> str:
    """The name of an image of a folder, or the video's name and the number of the frame, in letters that all label
    tools take."""
    name = source.frame_name(index)
    if not isinstance(source, FolderSource):
        name = f"{Path(source.info.name).stem}_{name}"
    return re.sub(r"[^\w.-]+", "-", name)


def explain(rank: int, chosen: Chosen, candidates: Candidates) -> Pick:
    """Returns the pick with its reason: the criterion in which it stands highest among all candidates."""
    values = {name: found[chosen.place] for name, found in candidates.criteria.items()}
    shares = {name: float((candidates.criteria[name] >= value).mean()) for name, value in values.items()}
    best = min(shares, key=shares.__getitem__)
    reason = f"{best} in the highest {shares[best]:.0%} of the frames"
    if shares[best] > 0.5:
        reason = "unlike all that are labelled or chosen before"
    return Pick(rank, float(chosen.distance), {name: float(value) for name, value in values.items()}, reason)
