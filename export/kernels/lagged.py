"""The fused computation of a mean with a lag (core/lag.py), in which the logits of F frames wait for their turn."""

import math
from collections import deque
from collections.abc import Iterable

import numpy as np

from steadyseg.core.motion import Motion
from steadyseg.export.kernels.postprocess import FusedPostprocess, PostprocessMaps, finite_logits


class LaggedPostprocess(FusedPostprocess):
    """`FusedPostprocess` that returns the maps of the frame F calls before, for one pass a frame and without motion.

    The kept mean ends at that frame. A copy of the mean adds the F later frames, each with its weight in the sum so
    far: F more kernel calls.
    """

    def __init__(self, num_classes: int, *, temperature: float, tau: float, lag: int, stride: int) -> None:
        super().__init__(num_classes, temperature=temperature, tau=tau, stride=stride)
        self._tau, self._lag = tau, lag

    def reset(self) -> None:
        """Forgets all earlier frames, waiting frames too, and their size."""
        super().reset()
        self._ahead: deque[tuple[np.ndarray | None, float]] = deque()
        self._shown = self._state

    def __call__(
        self, passes: Iterable[np.ndarray], size: tuple[int, int], gap: float = 1, motion: Motion | None = None
    ) -> PostprocessMaps:
        """One pass of logits (K, h, w) -> the maps of the frame F calls before; zeros in the first F calls after a
        reset. `gap` is infinity after a break."""
        (logits,) = (finite_logits(one.copy()) for one in passes)
        self._begin(size)
        self._ahead.append((logits, math.exp(-gap / self._tau)))
        maps = [np.zeros(self._member_entropy.shape, np.uint8) for _ in range(4)]
        if len(self._ahead) <= self._lag:
            return self._grow(maps, size)
        delayed, decay = self._ahead.popleft()
        self._mass = self._mass * np.float32(decay) + np.float32(delayed is not None)
        total = float(self._mass[0, 0])
        if delayed is not None:
            self._add(delayed, 1.0 / total, maps)
        past = self._state, self._member_entropy
        self._state, self._member_entropy = self._state.copy(), self._member_entropy.copy()
        weight = 1.0
        for later, decay in self._ahead:
            weight *= decay
            if not weight:  # a break: the frames after it add nothing
                break
            if later is None:
                continue
            total += weight
            self._add(later, weight / total, maps)
        found = self._unknown(size) if delayed is None else self._grow(maps, size)
        self._shown = self._state
        self._state, self._member_entropy = past
        return found

    @property
    def probs(self) -> np.ndarray:
        """(K, h, w) float32, a copy of the mean probabilities of the frame that came out last."""
        return self._shown.astype(np.float32) / self._coding[0]

    def _add(self, logits: np.ndarray, weight: float, maps: list[np.ndarray]) -> None:
        self._absorb(logits, np.full(self._member_entropy.shape, weight, np.float32), 1, maps)
