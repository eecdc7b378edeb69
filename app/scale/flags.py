"""The flags of `steadyseg batch`, and a reader of the flags of `steadyseg video` in its tables."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from steadyseg.app.parsing import parse
from steadyseg.app.video.flags import VideoJob, VideoOptions


@dataclass(frozen=True)
class BatchJob:
    """Videos, settings of their segmentation, the folder of results, and the workers."""

    sources: Positional[Annotated[tuple[str, ...], arg(metavar="SOURCE ...")]]
    """Video files, folders of videos, image folders, patterns ("drives/**/*.mp4"), `street[:SEED[:FRAMES]]`, lists
    (.txt, a source a line) and tables (.csv). A table has a column `source`; its other columns are `name` and flags of
    `steadyseg video`."""
    output: Annotated[Path, arg(aliases=["-o"])]
    """Folder of the results: a folder for each video, with report.json and frames.parquet (frames.csv without
    pyarrow). Videos with complete results are skipped."""
    videos: bool = False
    """Write video.mp4 of every video."""
    masks: bool = False
    """Write label and uncertainty PNGs of every frame."""
    workers: int | None = None
    """Processes, each with one video at a time; by default as many as the cores and the memory allow (measured on the
    first video)."""
    ray: str | None = None
    """Run the workers on Ray: `local` starts Ray on this machine; HOST:PORT is a running cluster. Its machines must see
    sources and output folder under the same names. By default the workers are processes of this machine."""
    options: VideoOptions = field(default_factory=VideoOptions)


Flags = tuple[tuple[str, str], ...]
"""(name, value) as written; `max_frames` and `max-frames` are the same."""


def flag_reader(options: VideoOptions) -> Callable[[Flags], VideoJob]:
    """Returns a function that parses flags on top of these options, into a job without source.

    Raises InputError for unknown flags and values. Equal lines are parsed once (4 ms each).
    """

    @cache
    def read(flags: Flags) -> VideoJob:
        words = [word for name, value in flags for word in (f"--{name.strip().replace('_', '-')}", value.strip())]
        default = VideoJob("", options=options)
        return parse(VideoJob, ["source", *words], "steadyseg video", "", default) if words else default

    return read
