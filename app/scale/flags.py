"""The flags of `steadyseg batch`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from steadyseg.app.video.flags import VideoOptions


@dataclass(frozen=True)
class BatchJob:
    """Videos, settings of their segmentation, the folder of results, and the workers."""

    sources: Positional[Annotated[tuple[str, ...], arg(metavar="SOURCE ...")]]
    """Video files, folders of videos, image folders, patterns ("drives/**/*.mp4"), `street[:SEED[:FRAMES]]`, and lists
    (.txt, a source a line)."""
    output: Annotated[Path, arg(aliases=["-o"])]
    """Folder of the results: a folder for each video, with report.json and frames.csv. Videos with complete results are
    skipped."""
    videos: bool = False
    """Write video.mp4 of every video."""
    masks: bool = False
    """Write label and uncertainty PNGs of every frame."""
    workers: int | None = None
    """Processes, each with one video at a time; by default one for each core, with 1.5 GB of memory each."""
    ray: str | None = None
    """Run the workers on Ray: `local` starts Ray on this machine; HOST:PORT is a running cluster. Its machines must see
    sources and output folder under the same names. By default the workers are processes of this machine."""
    options: VideoOptions = field(default_factory=VideoOptions)
