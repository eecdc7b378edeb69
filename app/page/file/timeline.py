"""A strip of time for a finished video: familiarity and expected accuracy, with scene cuts; a click jumps there."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from steadyseg.app.video.report import FrameFigures
from steadyseg.app.video.verdict import percent
from steadyseg.core.reference import NOVEL

MAX_POINTS = 600
"""This many points are merged in pairs, so that an hour takes no more memory than a minute."""
LEAST_FAMILIARITY = 0.003
"""Lower end of the logarithmic scale of familiarity; the included networks have references of 40 to 300 frames."""
LEAST_ACCURACY = 0.5
"""Lower end of the scale of expected accuracy."""
WIDTH, HEIGHT = 600, 40
"""Units of the drawing, which is stretched to the width of the page."""


@dataclass(frozen=True)
class Point:
    """One frame; or the lowest familiarity and accuracy of a few frames."""

    time_s: float
    familiarity: float | None
    accuracy: float | None
    """Expected accuracy, or the mean confidence if the method is not calibrated; None for a novel frame."""
    cut: bool
    alarm: bool
    """True while the alarm is on that the place is another than the training's."""

    def merge(self, later: "Point") -> "Point":
        """The point that merges both."""
        familiarities = [one.familiarity for one in (self, later) if one.familiarity is not None]
        accuracies = [one.accuracy for one in (self, later) if one.accuracy is not None]
        lowest = min(familiarities, default=None), min(accuracies, default=None)
        return Point(self.time_s, *lowest, self.cut or later.cut, self.alarm or later.alarm)


class Timeline:
    """Familiarity and expected accuracy of a stream over its time."""

    def __init__(self) -> None:
        self._points: list[Point] = []
        self._frames_a_point, self._frames = 1, 0
        self.is_calibrated = False
        self.end_s = 0.0

    def add(self, frame: FrameFigures) -> None:
        """Adds the values of a frame."""
        self.end_s = frame.time_s
        self.is_calibrated = frame.expected_accuracy is not None
        accuracy = frame.confidence if frame.expected_accuracy is None else frame.expected_accuracy
        alarm = frame.ood_s is not None
        is_novel = alarm or (frame.familiarity is not None and frame.familiarity <= NOVEL)
        point = Point(frame.time_s, frame.familiarity, None if is_novel else accuracy, frame.cut, alarm)
        if self._frames % self._frames_a_point:
            self._points[-1] = self._points[-1].merge(point)
        else:
            self._points.append(point)
        self._frames += 1
        if len(self._points) == MAX_POINTS and not self._frames % self._frames_a_point:
            pairs = zip(self._points[::2], self._points[1::2], strict=True)
            self._points = [first.merge(second) for first, second in pairs]
            self._frames_a_point *= 2

    def html(self) -> str:
        """The strip, which app/page/web/timeline.js connects with the video; empty for a single frame."""
        if self.end_s <= 0.0:
            return ""
        values = [(round(one.time_s, 3), one.familiarity, one.accuracy) for one in self._points]
        name = "expected accuracy" if self.is_calibrated else "mean confidence"
        lanes = self._lane(f"{name}, {percent(LEAST_ACCURACY)} to 100 %", accuracy_height)
        if any(one.familiarity is not None for one in self._points):
            title = f"familiarity; red: {percent(NOVEL)} or less; strong red: alarm"
            lanes = self._lane(title, familiarity_height) + lanes
        return (
            f"<div class='course' role='slider' tabindex='0' aria-label='time in the video' aria-valuemin='0' "
            f"aria-valuemax='{self.end_s:.2f}' aria-valuenow='0' data-accuracy='{name}' "
            f"data-points='{escape(json.dumps(values))}'>{lanes}<i class='head'></i></div>"
            "<div class='course-key'><output></output><span>dashed: scene cuts; click or drag to go there</span></div>"
        )

    def _lane(self, title: str, height: Callable[[Point], float | None]) -> str:
        """A curve over the time; `height`: distance of a point from the top, None for a gap."""
        curve, pen = "", "M"
        for one in self._points:
            y = height(one)
            curve += "" if y is None else f"{pen}{self._x(one):.1f} {y:.1f}"
            pen = "M" if y is None else "L"
        cuts = "".join(f"M{self._x(one):.1f} 0V{HEIGHT}" for one in self._points if one.cut)
        return (
            f"<div class='lane'><span>{title}</span><svg viewBox='0 0 {WIDTH} {HEIGHT}' preserveAspectRatio='none' "
            f"aria-hidden='true'>{self._bands()}<path class='cuts' d='{cuts}'/>"
            f"<path class='curve' d='{curve}'/></svg></div>"
        )

    def _bands(self) -> str:
        """Rectangles behind novel frames and behind alarms, each up to the next point."""
        ends = [*map(self._x, self._points[1:]), float(WIDTH)]
        kinds = ("alarm" if one.alarm else "novel" if (one.familiarity or 1.0) <= NOVEL else "" for one in self._points)
        return "".join(
            f"<rect class='{kind}' x='{self._x(one):.1f}' width='{max(end - self._x(one), 1):.1f}' height='{HEIGHT}'/>"
            for one, end, kind in zip(self._points, ends, kinds, strict=True)
            if kind
        )

    def _x(self, point: Point) -> float:
        return WIDTH * point.time_s / self.end_s


def accuracy_height(one: Point) -> float | None:
    """Distance from the top: 100 % at the top, `LEAST_ACCURACY` at the bottom."""
    return None if one.accuracy is None else HEIGHT * min(1.0, (1 - one.accuracy) / (1 - LEAST_ACCURACY))


def familiarity_height(one: Point) -> float | None:
    """Logarithmic distance from the top: 100 % at the top, `LEAST_FAMILIARITY` at the bottom."""
    if one.familiarity is None:
        return None
    return HEIGHT * math.log(max(one.familiarity, LEAST_FAMILIARITY)) / math.log(LEAST_FAMILIARITY)
