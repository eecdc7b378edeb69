"""How a camera is: what a worker says of it once a second, and what the driver makes of that over restarts. No torch
here."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class CameraState:
    """Counts are since this worker began to watch the camera; times are those of the worker's clock."""

    name: str
    frames: int = 0
    """Segmented."""
    dropped: int = 0
    """Due, but replaced by a newer one before they could be segmented."""
    reconnections: int = 0
    resets: int = 0
    """How often the temporal mean was started anew."""
    fps: float = 0.0
    """Segmented per second, over the last ten seconds."""
    age_s: float | None = None
    """Of the latest frame when its maps were there, counted from its arrival; None: there was none yet."""
    silent_s: float = 0.0
    """Since the latest frame was segmented, or since the watch began."""
    step_ms: float = 0.0
    """Of the processor, a frame, on average."""
    confidence: float | None = None
    """Mean over the pixels of the latest frame."""
    entropy: float | None = None
    """The same of the total uncertainty, a share of ln K."""
    novelty: float | None = None
    """Of the latest frame: the share of the network's own world that is at least as strange; None where it is not
    known."""
    novel_s: float = 0.0
    """For how long every frame has been strange (`core.reference.STRANGE`), up to the latest one."""
    expected_accuracy: float | None = None
    """Of the latest frame: the share of its pixels that should be right; None where no temperature follows the
    frame."""
    trouble: str = ""
    """Why there is no picture, without secrets."""


@dataclass(frozen=True)
class CameraFigures:
    """A camera over all its workers."""

    state: CameraState
    restarts: int = 0
    """Workers of this camera that died."""
    gap_s: float = 0.0
    """Without a segmented frame because a worker had died, in all."""


class CameraHistory:
    """Adds up what a camera's successive workers counted."""

    def __init__(self, name: str) -> None:
        self._before = self._now = CameraState(name)
        self._restarts, self._gap_s, self._lost_at_s = 0, 0.0, 0.0
        self._seen_at_s: float | None = None
        """When its worker last said something; nothing is silent that has not been opened yet."""

    def update(self, state: CameraState, now_s: float) -> None:
        """What the worker says now; `now_s` by the driver's clock."""
        if self._lost_at_s and state.frames:
            self._gap_s += max(0.0, now_s - state.silent_s - self._lost_at_s)
            self._lost_at_s = 0.0
        self._now, self._seen_at_s = state, now_s

    def lost(self, now_s: float) -> None:
        """The worker is gone: the gap began with its last frame."""
        self._restarts += 1
        if not self._lost_at_s:
            self._lost_at_s = (self._seen_at_s or now_s) - self._now.silent_s if self._now.frames else now_s
        self._before = self._sum()
        self._now = replace(CameraState(self._now.name), trouble="its worker has died and is started again")
        self._seen_at_s = now_s

    def figures(self, now_s: float) -> CameraFigures:
        """As of now: what a worker that does not answer said last grows old."""
        total = self._sum()
        seen_at_s = now_s if self._seen_at_s is None else self._seen_at_s
        silent_s = now_s - self._lost_at_s if self._lost_at_s else self._now.silent_s + max(0.0, now_s - seen_at_s)
        gap_s = self._gap_s + (now_s - self._lost_at_s if self._lost_at_s else 0.0)
        return CameraFigures(replace(total, silent_s=silent_s), self._restarts, gap_s)

    def _sum(self) -> CameraState:
        counted = ("frames", "dropped", "reconnections", "resets")
        return replace(self._now, **{name: getattr(self._before, name) + getattr(self._now, name) for name in counted})
