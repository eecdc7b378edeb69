"""The network on some frames alone: `Client` of steadyseg_client.py, which carries maps along the motion to the others.

    python steadyseg_client.py m.onnx drive.mp4 -o out --every 3     # or --every auto

Copy both files into your program: `EveryClient(path, every=3).step(frame)`.
"""

import cv2
import numpy as np
from steadyseg_client import MAPS, Client

MOST, AUTO_MOST, AUTO_DOUBT, CHANGED_DOUBT = 30, 4, 0.1, 0.5
LOSS, LOST_A_FRAME = 0.08, 0.0029
"""The constants of `steadyseg`: runtime/every.py, runtime/kernels/carried.py and core/expected.py."""


class EveryClient(Client):
    """A client whose network runs on every N-th frame, at a cut, and where other things than motion change the picture.
    auto: where the motion since the last call is in doubt, at most 4 frames apart. `calls` of `frames` had the network.
    """

    def __init__(self, path, device="cpu", options=None, every="auto"):
        every = int(every) if str(every).isdecimal() else every
        if not (every == "auto" or (type(every) is int and 1 <= every <= MOST)):
            raise ValueError(f"--every must be a whole number, 1 to {MOST}, or auto, got {every}")
        super().__init__(path, device, options)
        if self.states and not self.motion:
            raise ValueError(f"--every {every}: the mean of {path} follows no motion; omit it, or export --motion on")
        self.flow.dis.setFinestScale(1)  # as in core/motion.py
        self.most, self.limit = (AUTO_MOST, AUTO_DOUBT) if every == "auto" else (every, CHANGED_DOUBT)
        self.shown, self.since, self.age, self.frames, self.calls = None, None, 0, 0, 0

    def step(self, frame, gap=1):
        """As `Client.step`."""
        if self.previous != frame.shape:
            gap, self.previous = 0, frame.shape
        moved = self.flow(frame, gap)
        self.frames += 1
        if gap and self.shown:
            self.since, self.age = compose(self.since, moved), self.age + gap
            if self.age < self.most and 1.0 - self.since["trust"].mean() <= self.limit:
                return self.carried()
            gap, moved = self.age, self.since
        maps = self.compute(frame, gap, moved if self.motion else {})
        self.shown, self.since, self.age = maps if maps["confidence"][0, 0] else None, None, 0
        self.calls += 1
        return maps

    def carried(self):
        """The maps of the last call at the newest frame; where the motion is in doubt, they lose confidence."""
        maps, (height, width) = dict(self.shown), self.shown["label"].shape
        source, lost = self.since["motion"][0], LOSS * np.square(1 - self.since["trust"][0])
        scale = np.array([width / source.shape[1], height / source.shape[0]], np.float32)
        where = (cv2.resize(source, (width, height)) + np.float32(0.5)) * scale - np.float32(0.5)
        fine, even = cv2.resize(lost, (width, height)), {"confidence": 255 / len(self.classes), "entropy": 255}
        for name in MAPS:
            moved = warp(maps[name], where, cv2.INTER_NEAREST if name == "label" else cv2.INTER_LINEAR)
            maps[name] = np.rint(moved + fine * (even[name] - moved)).astype(np.uint8) if name in even else moved
        if "probs" in maps:
            planes = np.stack([warp(plane, source) for plane in maps["probs"]])
            maps["probs"] = planes + lost * (1 / len(planes) - planes)
        if "expected_accuracy" in maps:
            maps["expected_accuracy"] = maps["expected_accuracy"] * np.float32(1 - LOST_A_FRAME * self.age)
        return maps


def compose(first, then):
    """The motion of two steps, where the first may be None. Positions outside the picture are not trusted."""
    source = then["motion"][0]
    beyond = source - np.clip(source, 0, np.array(source.shape[1::-1], np.float32) - 1)
    trust = then["trust"][0] * (np.abs(beyond).max(-1) <= 0.5)
    if first:
        source, before = np.rint((warp(first["motion"][0], source) + beyond) * 32) / np.float32(32), source
        trust = trust * warp(first["trust"][0], before)
    return {"motion": source[None], "trust": trust[None]}


def warp(plane, source, how=cv2.INTER_LINEAR):
    return cv2.remap(plane, source, None, how, borderMode=cv2.BORDER_REPLICATE)
