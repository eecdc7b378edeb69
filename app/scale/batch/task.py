"""The messages between drivers and workers. No torch here: a worker reads this before it has chosen its threads."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class BatchOutputs:
    """The files that a batch makes of every video."""

    folder: Path
    videos: bool
    masks: bool


@dataclass(frozen=True)
class WorkerVersion:
    """Versions that driver and workers must share, so that results do not depend on where a video went."""

    steadyseg: str
    python: str
    libraries: str
    weights: str
    """First digits of the SHA-256 of the model's file."""


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
    stalled: bool = False
    """True if the worker made no progress; it must be replaced."""
    full_disk: int | None = None
    """The errno of a full disk; it ends the batch."""
    tries: int = 1
    verdict: str = ""
    """The report's verdict on the familiarity of the video; empty without familiarity statistics."""
    skipped: bool = False
    """True if the results existed already."""
    memory_bytes: int = 0
    """Peak resident memory of the worker so far."""
