"""A strip of time for a finished video: familiarity and mean confidence, with scene cuts; a click jumps there."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from steadyseg.app.video.report import FrameFigures
from steadyseg.app.video.verdict import mark_of, percent
from steadyseg.core.frame import Verdict
from steadyseg.core.reference import NOVEL

MAX_POINTS = 600
"""This many points are merged in pairs, so that an hour takes no more memory than a minute."""
LEAST_FAMILIARITY = 0.003
"""Lower end of the logarithmic scale of familiarity; the included networks have references of 40 to 300 frames."""
LEAST_CONFIDENCE = 0.5
"""Lower end of the scale of the mean confidence."""
WIDTH, HEIGHT = 600, 40
"""Units of the drawing, which is stretched to the width of the page."""


@dataclass(frozen=True)
class Point:
    """One frame; or the lowest familiarity and confidence of a few frames."""

    time_s: float
    familiarity: float | None
    confidence: float
    verdict: Verdict
    cut: bool

    def merge(self, later: "Point") -> "Point":
        """The point that merges both."""
        familiarities = [one.familiarity for one in (self, later) if one.familiarity is not None]
        lowest = min(familiarities, default=None), min(self.confidence, later.confidence)
        verdict = self.verdict if later.verdict == "expected" else later.verdict
        return Point(self.time_s, *lowest, verdict, self.cut or later.cut)


class Timeline:
    """Familiarity and mean confidence of a stream over its time."""

    def __init__(self) -> None:
        self._points: list[Point] = []
        self._frames_a_point, self._frames = 1, 0
        self.end_s = 0.0

    def add(self, frame: FrameFigures) -> None:
        """Adds the values of a frame."""
        self.end_s = frame.time_s
        point = Point(frame.time_s, frame.familiarity, frame.confidence, frame.verdict, frame.cut)
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
        values = [
            (round(one.time_s, 3), one.familiarity, round(one.confidence, 4), mark_of(one.verdict))
            for one in self._points
        ]
        lanes = self._lane(f"mean confidence, {percent(LEAST_CONFIDENCE)} to 100 %", confidence_height)
        if any(one.familiarity is not None for one in self._points):
            title = f"familiarity; amber: {percent(NOVEL)} or less; strong amber: few labels can be trusted"
            lanes = self._lane(title, familiarity_height) + lanes
        return (
            f"<div class='course' role='slider' tabindex='0' aria-label='time in the video' aria-valuemin='0' "
            f"aria-valuemax='{self.end_s:.2f}' aria-valuenow='0' "
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
        """Rectangles behind unfamiliar frames and behind doubtful frames, each up to the next point."""
        ends = [*map(self._x, self._points[1:]), float(WIDTH)]
        doubtful = (one.verdict in ("doubtful", "unlike") for one in self._points)
        unfamiliar = ((one.familiarity or 1.0) <= NOVEL for one in self._points)
        kinds = ("doubtful" if low else "novel" if far else "" for low, far in zip(doubtful, unfamiliar, strict=True))
        return "".join(
            f"<rect class='{kind}' x='{self._x(one):.1f}' width='{max(end - self._x(one), 1):.1f}' height='{HEIGHT}'/>"
            for one, end, kind in zip(self._points, ends, kinds, strict=True)
            if kind
        )

    def _x(self, point: Point) -> float:
        return WIDTH * point.time_s / self.end_s


def confidence_height(one: Point) -> float:
    """Distance from the top: 100 % at the top, `LEAST_CONFIDENCE` at the bottom."""
    return HEIGHT * min(1.0, (1 - one.confidence) / (1 - LEAST_CONFIDENCE))


def familiarity_height(one: Point) -> float | None:
    """Logarithmic distance from the top: 100 % at the top, `LEAST_FAMILIARITY` at the bottom."""
    if one.familiarity is None:
        return None
    return HEIGHT * math.log(max(one.familiarity, LEAST_FAMILIARITY)) / math.log(LEAST_FAMILIARITY)
