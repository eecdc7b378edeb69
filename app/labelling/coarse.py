"""`steadyseg data roads` and `steadyseg data within`: coarse labels, and a teacher's choices inside their sets."""

from steadyseg.app.console import track
from steadyseg.app.labelling.flags import RoadsJob, WithinJob
from steadyseg.core.system.files import require_new_folder
from steadyseg.core.system.machine import choose_device
from steadyseg.seg.data.class_file import classes_of
from steadyseg.seg.data.label_folder import open_split
from steadyseg.seg.data.roads import write_roads


def run_roads(job: RoadsJob) -> int:
    """Writes the data folders and the choices of their train pictures."""
    require_new_folder(job.output, [job.source], overwrite=job.overwrite)
    for folder in write_roads(job.source, job.output, job.overwrite):
        run_within(WithinJob(folder, job.model))
    return 0


def run_within(job: WithinJob) -> int:
    """Stores the choices of train; run again, it goes on where it stopped."""
    from steadyseg.seg.within import store_choices  # torch

    split = open_split(job.data, "train", classes_of(job.data, None))
    written = store_choices(split, job.model, choose_device("auto"), lambda places: track(places, job.data.name))
    print(f"{job.data}: {written} choices written, {len(split) - written} already there")
    return 0
