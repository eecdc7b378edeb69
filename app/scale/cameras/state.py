"""The state of a camera: the metrics that its worker reports once a second, added up over restarts. No torch here."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class CameraState:
    """One worker's metrics of a camera. Counts begin with the worker; times are by the worker's clock."""

    name: str
    frames: int = 0
    """Segmented frames."""
    dropped: int = 0
    """Due frames that a newer frame replaced before they were segmented."""
    reconnections: int = 0
    resets: int = 0
    """Restarts of the temporal mean."""
    fps: float = 0.0
    """Segmented frames per second over the last ten seconds."""
    sent_fps: float = 0.0
    """Frames per second that a network stream sends; 0 for other sources."""
    age_s: float | None = None
    """Age of the latest frame, from its arrival to its maps; None before the first frame."""
    silent_s: float = 0.0
    """Seconds since the latest frame was segmented, or since the start."""
    step_ms: float = 0.0
    """Mean processor time per frame."""
    confidence: float | None = None
    """Mean confidence of the latest frame."""
    entropy: float | None = None
    """Mean total uncertainty of the latest frame, as a share of ln K."""
    familiarity: float | None = None
    """Familiarity of the latest frame (`core.reference`); None without statistics of the training domain."""
    ood_s: float = 0.0
    """Seconds for which the place has differed from the training's (`core.alarm`); 0 without an alarm."""
    expected_accuracy: float | None = None
    """Expected accuracy of the latest frame; None if its temperature does not follow the frame."""
    low_s: float = 0.0
    """Seconds of low expected accuracy so far (`core.alarm`); 0 without an alarm."""
    trouble: str = ""
    """The reason why there is no picture, without secrets."""


@dataclass(frozen=True)
class CameraFigures:
    """The metrics of a camera over all its workers."""

    state: CameraState
    restarts: int = 0
    """Workers of this camera that died."""
    gap_s: float = 0.0
    """Total seconds without a segmented frame because a worker had died."""


class CameraHistory:
    """Adds up the counts of a camera's successive workers."""

    def __init__(self, name: str) -> None:
        self._before = self._now = CameraState(name)
        self._restarts, self._gap_s, self._lost_at_s = 0, 0.0, 0.0
        self._seen_at_s: float | None = None
        """Time of the worker's last report; a camera that is not yet open is not silent."""

    def update(self, state: CameraState, now_s: float) -> None:
        """Takes a worker's report; `now_s` is the driver's clock."""
        if self._lost_at_s and state.frames:
            self._gap_s += max(0.0, now_s - state.silent_s - self._lost_at_s)
            self._lost_at_s = 0.0
        self._now, self._seen_at_s = state, now_s

    def lost(self, now_s: float, why: str) -> None:
        """Records that the worker is gone; the gap began with its last frame."""
        self._restarts += 1
        if not self._lost_at_s:
            self._lost_at_s = (self._seen_at_s or now_s) - self._now.silent_s if self._now.frames else now_s
        self._before = self._sum()
        self._now = replace(CameraState(self._now.name), trouble=f"its worker is started again: {why}")
        self._seen_at_s = now_s

    def figures(self, now_s: float) -> CameraFigures:
        """The metrics at `now_s`; while a worker does not answer, the age of its last report grows."""
        total = self._sum()
        seen_at_s = now_s if self._seen_at_s is None else self._seen_at_s
        silent_s = now_s - self._lost_at_s if self._lost_at_s else self._now.silent_s + max(0.0, now_s - seen_at_s)
        gap_s = self._gap_s + (now_s - self._lost_at_s if self._lost_at_s else 0.0)
        return CameraFigures(replace(total, silent_s=silent_s), self._restarts, gap_s)

    def _sum(self) -> CameraState:
        counted = ("frames", "dropped", "reconnections", "resets")
        return replace(self._now, **{name: getattr(self._before, name) + getattr(self._now, name) for name in counted})
