"""The soak: many frames in a row, and whether the memory of the process stays flat."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice

from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame
from steadyseg.core.segmenter import Segmenter
from steadyseg.studies.performance.machine import rss_bytes

SAMPLES = 200
WARM_SHARE = 0.1
"""Share of the frames that are warm-up: until then allocators and caches still grow."""
FEWEST = 20


@dataclass(frozen=True)
class Soak:
    """Resident memory in bytes."""

    frames: int
    mode: str
    executor: str
    warm: int
    """After the first tenth of the frames."""
    end: int
    largest: int
    """Largest of all samples after the warm-up."""
    samples: tuple[int, ...]
    """All of them, from before the first frame on."""

    @property
    def growth_percent(self) -> float:
        return 100 * (self.end / self.warm - 1)

    def record(self) -> dict[str, object]:
        return {**asdict(self), "growth_percent": round(self.growth_percent, 3)}


def check_soak(frames: int | None) -> None:
    """Raises InputError, before any work, for a soak that cannot be measured."""
    if frames is None:
        return
    if frames < FEWEST:
        raise InputError(f"--config soak must be {FEWEST} frames or more, got {frames}")
    rss_bytes()


def soak(
    segmenter: Segmenter,
    stream: Iterator[Frame],
    frames: int,
    *,
    memory: Callable[[], int] = rss_bytes,
    progress: Callable[[int], None] = lambda _: None,
) -> Soak:
    """Runs `frames` frames of the stream and looks at the memory 200 times, or after every frame where they are
    fewer."""
    every = max(1, frames // SAMPLES)
    samples, done_at = [memory()], [0]
    for done, frame in enumerate(islice(stream, frames), start=1):
        segmenter.step(frame)
        if done % every == 0 or done == frames:
            samples.append(memory())
            done_at.append(done)
            progress(done)
    warm = next(position for position, done in enumerate(done_at) if done >= WARM_SHARE * frames)
    return Soak(
        frames,
        segmenter.method.mode,
        segmenter.executor,
        samples[warm],
        samples[-1],
        max(samples[warm:]),
        tuple(samples),
    )
