"""What drivers and workers tell each other. No torch here: a worker reads this before it has chosen its threads."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class BatchOutputs:
    """What a batch makes of every video."""

    folder: Path
    videos: bool
    masks: bool


@dataclass(frozen=True)
class WorkerVersion:
    """What must be alike in the driver and in every worker, or results would depend on where a video went."""

    steadyseg: str
    python: str
    torch: str
    weights: str
    """First digits of the SHA-256 of the model's file."""


@dataclass(frozen=True)
class Row:
    """What became of a video."""

    name: str
    source: str
    frames: int = 0
    seconds: float = 0.0
    """Of work, the writing of results included."""
    reason: str = ""
    """Why there are no results; empty where there are."""
    own_fault: bool = True
    """Whether the video itself is the reason, so that trying again is of no use."""
    full_disk: int | None = None
    """The errno of a disk that took no more: it ends the batch."""
    tries: int = 1
    skipped: bool = False
    """The results were there already."""
    memory_bytes: int = 0
    """The most that the worker has had resident so far."""
