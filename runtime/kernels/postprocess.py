"""The fused computation after the network on the CPU: logits to four uint8 maps in one pass over memory.

core/prediction.py and core/temporal.py define softmax, entropies and temporal mean; runtime/kernels/update.py and
runtime/kernels/enlarge.py compile the same arithmetic.
"""

import functools
import math
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from steadyseg.core.frame import UNKNOWN
from steadyseg.core.method import GATE_FLOOR, SMALLEST_PROB
from steadyseg.core.motion import Motion, warp_plane
from steadyseg.core.system.machine import available_cpus
from steadyseg.runtime.kernels.enlarge import enlarge_kernel
from steadyseg.runtime.kernels.update import update_kernel

BLOCK_BYTES = 2**17
"""Probabilities of one block, which stay in the L2 cache in all loops over classes (16 kB is a third slower)."""
MAX_FIXED_POINT_MASS = 4.0
"""Rounding to 1/65535 adds up to mass / 2 steps, 3e-5 here (tau 3.4); means over more frames are kept in float32."""

MAX_MOVED_MASS = 9.0
"""The limit for a mean that follows motion, which is rounded once more by each warp: 1.4e-4 (tau 8)."""

CODING = (np.float32(65535.0), np.float32(0.5))
"""Of probabilities in fixed point: the level of 1, and what is added before the cast."""
FAR = np.float32(1e5)
"""Distance from the largest logit at which a probability is 0, at temperatures up to 1,000."""


class PostprocessMaps(NamedTuple):
    """Four (H, W) uint8 maps at the network's size, as in core/frame.Maps."""

    label: np.ndarray
    confidence: np.ndarray
    entropy: np.ndarray
    disagreement: np.ndarray


class FusedPostprocess:
    """The state of one stream, and the kernels that advance the state. One thread at a time may use an object."""

    def __init__(
        self,
        num_classes: int,
        *,
        temperature: float = 1.0,
        tau: float | None = 1.25,
        samples: int = 1,
        stride: int = 1,
        motion: bool = False,
        gated: bool = False,
        geometric: bool = False,
        threads: int | None = None,
    ) -> None:
        """With `tau` None there is no temporal smoothing. `samples`: dropout passes per frame. `stride`: the stride of
        the network's head, 1 or 2. `motion`: True if calls give a motion, along which the mean is warped. `gated`: True
        if the past weighs less where it predicts another class (core/temporal.py), with motion and one pass a frame.
        `geometric`: True if log probabilities are averaged, with one pass a frame.

        Compiles: 4 s in the first process on a machine, 0.4 s later (one core, measured).
        """
        self.num_classes, self.temperature, self.tau = num_classes, temperature, tau
        self.samples, self.stride, self.motion = samples, stride, motion and tau is not None
        self._floor = np.float32(GATE_FLOOR if gated else 1.0)
        self._smallest = np.float32(SMALLEST_PROB if geometric and tau is not None else 0.0)
        self.threads = available_cpus() if threads is None else threads
        # Several members are summed in the state: N roundings in the same direction would be N / 2 steps.
        most = MAX_MOVED_MASS if motion else MAX_FIXED_POINT_MASS
        fixed_point = samples == 1 and not geometric and (tau is None or 1.0 / -math.expm1(-1.0 / tau) <= most)
        self._type: Any = np.uint16 if fixed_point else np.float32
        self._coding = CODING if fixed_point else (np.float32(1.0), np.float32(0.0))
        name = np.dtype(self._type).name
        coarse = "uint16" if self._smallest else name
        self._update, self._enlarge = update_kernel(name), enlarge_kernel(coarse) if stride == 2 else None
        self.reset()

    def reset(self) -> None:
        """Forgets all earlier frames, and their size."""
        self._size: tuple[int, int] | None = None
        self._mass = np.empty((0, 0), np.float32)
        self._state = np.empty((self.num_classes, 0, 0), self._type)
        self._coded = np.empty((self.num_classes, 0, 0), np.uint16)
        self._member_entropy = np.empty((0, 0), np.float32)

    def __call__(
        self, passes: Iterable[np.ndarray], size: tuple[int, int], gap: int = 1, motion: Motion | None = None
    ) -> PostprocessMaps:
        """`samples` logits (K, h, w) float32, C-contiguous -> the maps of the frame at the network's size (H, W).

        (h, w) is (H, W) or, at stride 2, half of it rounded up. Each pass is consumed before the next one is requested,
        so passes may share a buffer. `gap`: source frames since the previous call; `motion`: motion since then, of the
        state's size. ValueError for a wrong shape, type, number of passes or gap, and for another size without a
        `reset`. An error among the passes forgets the earlier frames. A frame with NaN or infinity in a pass is left
        out of the mean, and fully uncertain (`core.temporal`).
        """
        if gap < 1:
            raise ValueError(f"the frame gap must be 1 or more, got {gap}")
        self._begin((size[0], size[1]))
        if self.motion and motion:
            self._carry(motion)
        decay = 0.0 if self.tau is None else math.exp(-gap / self.tau)
        self._mass *= np.float32(decay)
        weight = np.empty_like(self._member_entropy)
        weight[...] = np.reciprocal(self._mass + np.float32(1.0))
        before = (self._state, self._member_entropy)
        if self.samples > 1 and self.tau is not None:  # to undo the passes of a frame if a later one has NaN
            self._state, self._member_entropy = self._state.copy(), self._member_entropy.copy()
        coarse = [np.empty(self._member_entropy.shape, np.uint8) for _ in range(4)]
        count, finite = 0, True
        try:
            for count, logits in enumerate(passes, start=1):
                if count > self.samples:
                    break
                finite = finite and self._absorb(logits, weight, count, coarse)
            if count != self.samples:
                raise ValueError(f"a frame is {self.samples} passes, got {'more' if count > self.samples else count}")
        except BaseException:
            self.reset()  # half a frame is in the mean
            raise
        if not finite:
            self._state, self._member_entropy = before
            return self._unknown(size)
        if self._floor < 1:
            np.reciprocal(weight, out=self._mass)
        else:
            self._mass += np.float32(1.0)
        return self._grow(coarse, size)

    @property
    def probs(self) -> np.ndarray:
        """(K, h, w) float32, a copy of the mean probabilities; in fixed point their sum is 1 within K / 131070."""
        return np.exp(self._state) if self._smallest else self._state.astype(np.float32) / self._coding[0]

    @property
    def member_entropy(self) -> np.ndarray:
        """(h, w) float32, a copy of the mean entropy of the members, or of the divergence, in nats."""
        return self._member_entropy.copy()

    @property
    def state_bytes(self) -> int:
        """Bytes that are kept from frame to frame."""
        return self._state.nbytes + self._member_entropy.nbytes + self._mass.nbytes

    def _begin(self, size: tuple[int, int]) -> None:
        if self._size is None:
            height, width = (-(-length // self.stride) for length in size)
            if height < 1 or width < 1:
                raise ValueError(f"the network's size must be positive, got {size}")
            self._state = np.zeros((self.num_classes, height, width), self._type)
            self._coded = np.zeros(self._state.shape if self._smallest else (0, 0, 0), np.uint16)
            self._member_entropy = np.zeros((height, width), np.float32)
            self._mass = np.zeros((height, width) if self.motion else (1, 1), np.float32)
            self._size = size
        elif self._size != size:
            raise ValueError(f"the network's size was {self._size} and is {size}: reset first")

    def _carry(self, motion: Motion) -> None:
        """Warps the state along the motion (core/temporal.warp_state)."""
        for plane in (*self._state, self._member_entropy, self._mass):
            plane[...] = warp_plane(plane, motion.source)
        self._mass *= motion.trust

    def _absorb(self, logits: np.ndarray, weight: np.ndarray, count: int, maps: list[np.ndarray]) -> bool:
        """Adds the count-th member to the mean; the last member also gives the maps. Does nothing and returns False if
        the member is not finite."""
        logits = np.asarray(logits)
        if logits.shape != self._state.shape or logits.dtype != np.float32 or not logits.flags.c_contiguous:
            kind = "" if logits.flags.c_contiguous else ", not C-contiguous"
            raise ValueError(f"logits must be {self._state.shape} float32, got {logits.shape} {logits.dtype}{kind}")
        finite = finite_logits(logits)
        if finite is None or not math.isfinite(self.temperature):
            return False
        classes, pixels = self.num_classes, self._member_entropy.size
        block = max(64, BLOCK_BYTES // (4 * classes) // 64 * 64)
        share_work(
            self.threads,
            -(-pixels // block),
            self._update,
            finite.reshape(classes, pixels),
            np.float32(1.0 / self.temperature),
            self._state.reshape(classes, pixels),
            self._member_entropy.reshape(pixels),
            self._coding,
            weight.reshape(pixels),
            self._floor,
            self._smallest,
            self._coded.reshape(len(self._coded), pixels if self._smallest else 0),
            (np.float32(count == 1), np.float32(1.0 / self.samples)),
            block,
            count == self.samples,
            np.float32(255.0 / math.log(classes)),
            tuple(one.reshape(pixels) for one in maps),
        )
        return True

    def _unknown(self, size: tuple[int, int]) -> PostprocessMaps:
        """Returns the maps of a frame that is not finite: the label of the past, or class 0 without a temporal mean."""
        if self.tau is None:
            self._state[:] = 0
        label = self._state.argmax(0).astype(np.uint8)
        maps = self._grow([label, *(np.full(label.shape, byte, np.uint8) for byte in UNKNOWN)], size)
        maps.confidence[:] = 0
        return maps

    def _grow(self, coarse: list[np.ndarray], size: tuple[int, int]) -> PostprocessMaps:
        """Enlarges the maps to the network's size; label and confidence come from the enlarged mean
        (core/preprocess.enlarge)."""
        if self.stride == 1:
            return PostprocessMaps(*coarse)
        fine = tuple(np.empty(size, np.uint8) for _ in range(4))
        mean = (self._coded, CODING) if self._smallest else (self._state, self._coding)
        share_work(self.threads, size[0], self._enlarge, *mean, (coarse[2], coarse[3]), fine)
        return PostprocessMaps(*fine)


def share_work(threads: int, pieces: int, kernel: Any, *arguments: Any) -> None:
    """Runs the kernel here and on idle helpers; in the end it waits only for helpers that have started."""
    counter = np.zeros(1, np.int64)
    helpers = [_helpers().submit(kernel, counter, *arguments) for _ in range(min(threads, pieces) - 1)]
    kernel(counter, *arguments)
    for helper in helpers:
        if not helper.cancel():
            helper.result()


def finite_logits(logits: np.ndarray) -> np.ndarray | None:
    """Returns logits (K, h, w) without infinity; None where a pixel has no probabilities.

    Minus infinity is a probability of 0, as in torch. The kernel's mathematics know finite numbers alone.
    """
    if np.isfinite(logits).all():
        return logits
    logits = np.maximum(logits, logits.max(0) - FAR)
    return logits if np.isfinite(logits).all() else None


@functools.cache
def _helpers() -> ThreadPoolExecutor:
    """Threads that all streams share: numba has a fixed number and aborts the process when two streams meet."""
    return ThreadPoolExecutor(max(1, available_cpus() - 1), thread_name_prefix="host-maps")
