"""The window of `steadyseg video --show`: frames as they are made, and keys for method, view and pause."""

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TypeVar

import numpy as np

from steadyseg.app.opencv import opencv
from steadyseg.app.sources.source import SourceInfo
from steadyseg.app.video.flags import VIEW_NAMES, VideoJob, ViewName
from steadyseg.app.video.job import open_painter, shown_classes
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.method import MODE_NAMES, MethodOptions, ModeName
from steadyseg.core.segmenter import Segmenter

NAME = "SteadySeg"
KEYS = "m: method, v: view, space: pause, q: quit"
T = TypeVar("T")
SAMPLES = 5
"""Passes of `bnn` if the job names no number: the published 30 passes take a second a frame on two cores."""
MAX_WIDTH, MAX_HEIGHT = 1600, 900
"""Largest size in pixels at which the window opens; the user may enlarge it."""
PROBE = f"import cv2; cv2.namedWindow({NAME!r}); cv2.waitKey(1)"
PROBE_S = 30
HEADLESS = "not implemented"
"""Part of OpenCV's message from a build without windows."""


def check_display() -> None:
    """Raises InputError if no window can be opened. A separate process tries it, since Qt ends a process without a
    display."""
    try:
        subprocess.run([sys.executable, "-P", "-c", PROBE], capture_output=True, text=True, timeout=PROBE_S, check=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        remedy = "there is no display that answers; run it in a desktop session (over ssh: ssh -X), or write a file: -o"
        if HEADLESS in str(error.stderr):
            remedy = "this OpenCV has no windows: pip uninstall opencv-python-headless; pip install opencv-python"
        raise InputError(f"--show: {remedy}") from error


class Player:
    """The settings of the window, which keys change."""

    def __init__(self, job: VideoJob, segmenter: Segmenter, reopen: Callable[[MethodOptions], Segmenter]) -> None:
        """`reopen` opens the model with another method; InputError if the model lacks the method."""
        self._options, self.segmenter, self._reopen = job.options, segmenter, reopen
        self._classes = shown_classes(job.options, segmenter)
        self._keep_probs = segmenter.keep_probs
        self.view = job.options.view
        self.paused = self.ended = False
        self.resized = True
        """True until the window has the size of the view's picture."""
        self.trouble = ""
        """Reason why the last key changed nothing."""
        self._painter = open_painter(job.options, segmenter, self._classes)
        self.notes: list[str] = []
        """Changes of the method, for the report."""

    def draw(self, frame: Frame, maps: Maps) -> np.ndarray:
        """(H, W, 3) uint8 RGB."""
        if self.view == "set-size" and maps.probs is None:
            return frame.image  # a paused frame, whose probabilities were not kept
        return self._painter(frame, maps)

    def press(self, key: str, index: int) -> None:
        """Does what a key asks; `index`: number of the frame that is shown."""
        if key in ("q", "\x1b"):
            self.ended = True
        elif key == " ":
            self.paused = not self.paused
        elif key == "v":
            self._take_next(VIEW_NAMES, self.view, self._change_view)
        elif key == "m":
            self._take_next(MODE_NAMES, self.segmenter.method.mode, lambda mode: self._change_method(mode, index))

    def _take_next(self, names: tuple[T, ...], now: T, change: Callable[[T], None]) -> None:
        """Changes to the next name that the model supports."""
        place = names.index(now)
        for name in names[place + 1 :] + names[:place]:
            try:
                change(name)
            except InputError as error:
                self.trouble = str(error)
            else:
                self.trouble = ""
                return

    def _change_view(self, view: ViewName) -> None:
        self._painter = open_painter(replace(self._options, view=view), self.segmenter, self._classes)
        self.resized |= "side-by-side" in (view, self.view)
        self.view = view
        self.segmenter.keep_probs = self._keep_probs or view == "set-size"

    def _change_method(self, mode: ModeName, index: int) -> None:
        if self.segmenter.method.lag:
            raise InputError("with --lag the method stays, since frames wait for later ones")
        chosen = self._options.method
        if mode != chosen.mode:  # the flags belong to another mode
            samples = (chosen.samples or SAMPLES) if mode == "bnn" else None
            chosen = MethodOptions(mode, samples, calibrated=chosen.calibrated, adaptive=chosen.adaptive)
        self.segmenter.continue_as(self._reopen(chosen))
        self.segmenter.keep_probs = self._keep_probs or self.view == "set-size"
        self.notes.append(f"{self.segmenter.method} from frame {index + 1} on, chosen in the window")
        try:
            self._change_view(self.view)
        except InputError:  # the view needs a fit that this method lacks
            self._change_view("overlay")


class Window(AbstractContextManager["Window"]):
    """An OpenCV window. Call it with every frame; it waits until the frame is due."""

    def __init__(self, player: Player) -> None:
        self._player, self._cv2 = player, opencv()
        self._last: tuple[float, float] | None = None
        """Time at which the last frame was shown, and its time in the source."""
        self._seconds = 0.0
        self._cv2.namedWindow(NAME, self._cv2.WINDOW_NORMAL | self._cv2.WINDOW_GUI_NORMAL)

    def __call__(self, frame: Frame, maps: Maps, info: SourceInfo) -> bool:
        """Shows a frame and does what the keys ask; returns False once the user has ended it."""
        now_s, due_s = time.perf_counter(), 0.0
        if self._last is not None:
            took_s = now_s - self._last[0]
            due_s = 0.0 if info.live else frame.time_s - self._last[1] - took_s
            self._seconds += 0.2 * (max(took_s, took_s + due_s) - self._seconds)
        self._wait(due_s, frame)
        self._last = (time.perf_counter(), frame.time_s)
        self._draw(frame, maps, info.name)
        while self._player.paused and not self._player.ended:
            if self._wait(0.05, frame):
                self._draw(frame, maps, info.name)
            self._last = (time.perf_counter(), frame.time_s)
        return not self._player.ended

    def _wait(self, seconds: float, frame: Frame) -> bool:
        """Lets the window work for this long or until a key is pressed, and handles the key; True if a key was
        pressed."""
        key = self._cv2.waitKey(max(1, round(1e3 * seconds)))
        if key >= 0:
            self._player.press(chr(key & 0xFF), frame.index)
        if self._cv2.getWindowProperty(NAME, self._cv2.WND_PROP_VISIBLE) < 1 and self._last is not None:
            self._player.ended = True  # closed by its button
        return bool(key >= 0)

    def _draw(self, frame: Frame, maps: Maps, source: str) -> None:
        picture = self._player.draw(frame, maps)
        self._cv2.imshow(NAME, picture[..., ::-1])
        if self._player.resized:
            height, width = picture.shape[:2]
            scale = min(1.0, MAX_WIDTH / width, MAX_HEIGHT / height)
            self._cv2.resizeWindow(NAME, round(scale * width), round(scale * height))
            self._player.resized = False
        rate = f", {1 / self._seconds:.1f} frames/s" if self._seconds else ""
        words = (
            self._player.trouble or f"{source}: {self._player.segmenter.method}, {self._player.view}{rate}  ({KEYS})"
        )
        self._cv2.setWindowTitle(NAME, f"{NAME}  {words}")

    def __exit__(self, *_: object) -> None:
        self._cv2.destroyAllWindows()
