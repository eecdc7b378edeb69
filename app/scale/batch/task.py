"""What the driver of a batch and its workers tell each other. No torch here: a process reads this before it chooses its
core."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from steadyseg.app.scale.batch.clips import Clip
from steadyseg.app.video.flags import VideoOptions

STALL_S = 300.0
"""A worker ends itself after this time without a new frame; a frame takes far less."""


@dataclass(frozen=True)
class BatchTask:
    """What a batch makes of every video, and what its workers must be like."""

    folder: Path
    videos: bool = False
    masks: bool = False
    options: VideoOptions = field(default_factory=VideoOptions)
    versions: tuple[tuple[str, str], ...] = ()
    """`versions_of` the driver, so that results do not depend on where a video went."""
    stall_s: float = STALL_S

    def mark(self, clip: Clip) -> Path:
        """A file that exists while a worker is at the video; it has content if the worker ended itself."""
        return self.folder / f".{clip.name}.begun"


@dataclass(frozen=True)
class Row:
    """The result of one video."""

    name: str
    source: str
    frames: int = 0
    seconds: float = 0.0
    """Seconds of work, including the writing of results."""
    reason: str = ""
    """The reason why there are no results; empty on success."""
    fault: Literal["video", "options", "worker", "disk"] = "video"
    """What is at fault. A worker's fault is worth another try; options and a full disk end the batch."""
    tries: int = 1
    verdict: str = ""
    """The report's verdict on the familiarity of the video; empty without familiarity statistics."""
    caveat: str = ""
    """What the verdict is not, in the report; empty where nothing is estimated."""
    skipped: bool = False
    """True if the results existed already."""
