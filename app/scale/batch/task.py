"""What the driver of a batch and its workers tell each other. No torch here: a process reads this before it chooses its
core."""

from dataclasses import dataclass
from pathlib import Path

from steadyseg.app.scale.batch.clips import Clip

STALL_S = 300.0
"""A worker ends itself after this time without a new frame; a frame takes far less."""


@dataclass(frozen=True)
class BatchTask:
    """What a batch makes of every video, and what its workers must be like."""

    folder: Path
    videos: bool = False
    masks: bool = False
    model: str = ""
    """The model whose weights `versions` names."""
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
    own_fault: bool = True
    """True if the video itself is at fault, so that another try is of no use."""
    refused: bool = False
    """True if the worker could not open the network of the video."""
    full_disk: int | None = None
    """The errno of a full disk; it ends the batch."""
    tries: int = 1
    verdict: str = ""
    """The report's verdict on the familiarity of the video; empty without familiarity statistics."""
    skipped: bool = False
    """True if the results existed already."""
    memory_bytes: int = 0
    """Peak resident memory of the worker so far."""
