#!/usr/bin/env python3
"""Segments a video with a file that `steadyseg export --stateful` wrote. Needs only numpy, onnxruntime and OpenCV.

    python steadyseg_client.py m.onnx drive.mp4 -o out     # labels and overlays

Copy this file into your program: `Client(path).step(frame)` returns the maps of the next frame. With `--device cuda`
the temporal state stays on the card; this path was never run.
"""

import argparse
import importlib
import json
import math
import sys
from pathlib import Path

import cv2
import numpy as np
import onnxruntime

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
MAPS = ("label", "confidence", "entropy", "disagreement")
MAX_CHARACTERS, MAX_STATE_VALUES = 2**20, 2**30
"""Limits on a metadata entry, which may come from anyone, and on all states, the same as in `steadyseg`."""


def refuse(name, fault):
    raise ValueError(f"malformed {name} ({fault}); export it again with steadyseg export")


def parse(props, key):
    """The JSON value of an entry."""
    text = props.get(key, "")
    if len(text) > MAX_CHARACTERS:
        refuse(key, f"more than {MAX_CHARACTERS} characters")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        refuse(key, "no JSON")


def whole(value, name, low, high):
    if type(value) is int and low <= value <= high:
        return value
    given = str(value)[:40] if isinstance(value, int | float) else "no number"
    refuse(name, f"{given}, expected a whole number from {low} to {high}")


def check_classes(names, palette):
    """Requires 2 to 255 classes, because the void id also takes one of the 256 labels of 8 bits."""
    if not isinstance(names, list) or not 2 <= len(names) <= 255:
        refuse("classes", "expected 2 to 255 names")
    if not all(isinstance(name, str) and 1 <= len(name) <= 100 and name.isprintable() for name in names):
        refuse("classes", "names are texts of 1 to 100 printable characters")
    if len(set(names)) != len(names):
        refuse("classes", "two names are equal")
    if not isinstance(palette, list) or len(palette) != len(names):
        refuse("palette", "expected a colour for each class")
    if not all(isinstance(color, list) and len(color) == 3 for color in palette):
        refuse("palette", "a colour is [red, green, blue]")
    [whole(value, "palette", 0, 255) for color in palette for value in color]


class Client:
    """A file and the state of one stream; everything but the path is read from the file's metadata."""

    def __init__(self, path, device="cpu", options=None):
        """`options` of the CUDA provider, such as {"use_tf32": "0"}."""
        gpu = [] if device == "cpu" else [(PROVIDERS[device], options or {})]
        if gpu and hasattr(onnxruntime, "preload_dlls"):
            onnxruntime.preload_dlls()  # CUDA's libraries from their wheels; prints the name of each that is missing
        self.session = onnxruntime.InferenceSession(str(path), providers=[*gpu, PROVIDERS["cpu"]])
        if PROVIDERS[device] not in self.session.get_providers():
            raise ValueError(
                f"--device {device}: ONNX Runtime cannot use it; pip install 'onnxruntime-gpu[cuda,cudnn]' or use cpu"
            )
        props = self.session.get_modelmeta().custom_metadata_map
        if props.get("steadyseg_format") != "1" or props.get("kind") != "stream":
            raise ValueError(f"{path}: no stream; make one with steadyseg export --stateful")
        if props.get("lag", "0") != "0":
            raise ValueError(f"{path}: its maps come late; export it again")
        self.device = device
        self.size = [whole(parse(props, name), name, 1, 2**14) for name in ("input_height", "input_width")]
        stride = whole(parse(props, "head_stride"), "head_stride", 1, 2)
        self.state_size = tuple(-(-side // stride) for side in self.size)
        self.classes, palette, self.motion = (parse(props, name) for name in ("classes", "palette", "motion"))
        check_classes(self.classes, palette)
        if type(self.motion) is not bool:
            refuse("motion", "expected true or false")
        self.palette = np.pad(np.array(palette, np.uint8), ((0, 256 - len(palette)), (0, 0)))
        self.outputs = [value.name for value in self.session.get_outputs()]
        states = [value for value in self.session.get_inputs() if value.name.startswith("state_")]
        self.check_graph(states)
        zeros = {value.name: np.zeros((1, *value.shape[1:]), np.float32) for value in states}
        self.states = {name: onnxruntime.OrtValue.ortvalue_from_numpy(v, device, 0) for name, v in zeros.items()}
        self.binding, self.flow, self.previous = self.session.io_binding(), Flow(self.state_size), None

    def check_graph(self, states):
        """Requires the inputs and outputs that the metadata describe."""
        sizes = [value.shape[1:] for value in states]
        is_fixed = all(isinstance(side, int) for size in sizes for side in size)
        if not is_fixed or sum(map(math.prod, sizes)) > MAX_STATE_VALUES:
            refuse("graph", "its states have free sizes or more than 2^30 values")
        if len(self.session.get_inputs()) != (5 if self.motion else 3) + len(states):
            refuse("graph", "its inputs are not those of its metadata")
        shapes = [value.shape[-3:] for value in self.session.get_outputs()]
        if tuple(self.outputs[:4]) != MAPS or shapes[4:5] != [[len(self.classes), *self.state_size]]:
            refuse("graph", "its maps and probabilities are not those of its metadata")

    def step(self, frame, gap=1):
        """(H, W, 3) uint8 RGB -> {name: output}: maps (H, W) uint8; some files add `familiarity` and
        `expected_accuracy`, (1,) float32, or `probs` (K, h, w). `gap`: source frames since the last call; 0 resets
        the states, as after a seek. A scene cut or a frame of another size resets them too."""
        if self.previous != frame.shape:
            gap, self.previous = 0, frame.shape
        return self.compute(frame, gap, self.flow(frame, gap) if self.motion else {})

    def compute(self, frame, gap, motion):
        """`step` with the inputs of `Flow`."""
        outputs = self.run({"frame": frame[None], "gap": [[max(gap, 1)]], "reset": [[gap == 0]]} | motion)
        return {name: outputs[name].numpy()[0] for name in self.outputs if not name.startswith("state_")}

    def run(self, inputs):
        """One call with named inputs -> OrtValues by name. The states stay on the device from call to call."""
        for name, value in inputs.items():
            self.binding.bind_cpu_input(name, np.ascontiguousarray(value, np.uint8 if name == "frame" else np.float32))
        for name, value in self.states.items():
            self.binding.bind_ortvalue_input(name, value)
        for name in self.outputs:
            self.binding.bind_output(name, self.device if name.startswith("state_") else "cpu")
        self.session.run_with_iobinding(self.binding)
        found = dict(zip(self.outputs, self.binding.get_outputs(), strict=True))
        self.states = {name: found[name[:-3] + "_out"] for name in self.states}
        return found


class Flow:
    """The inputs `motion` and `trust`: where each pixel was in the last frame, and how reliable that is."""

    def __init__(self, size):
        self.size, self.last = size, None
        self.grid = np.stack(np.meshgrid(np.arange(size[1]), np.arange(size[0])), axis=-1).astype(np.float32)
        self.dis = cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_ULTRAFAST)

    def __call__(self, frame, gap):
        grey = cv2.resize(cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY), self.size[::-1], interpolation=cv2.INTER_AREA)
        last, self.last = (self.last if gap else None), grey
        if last is None:
            return {"motion": self.grid[None], "trust": np.ones((1, *self.size), np.float32)}
        moved = self.dis.calc(grey, last, None) if min(self.size) >= 32 else 0  # smaller ones: an error
        motion = np.rint((self.grid + moved) * 32) / np.float32(32)
        before = cv2.remap(last, motion, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        apart = cv2.blur(cv2.absdiff(grey, before).astype(np.float32), (5, 5))
        return {"motion": motion[None], "trust": np.exp(-np.square(apart / 20))[None]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("source", help="a video, pictures as %%05d.png, or a camera's number")
    parser.add_argument("-o", "--output", type=Path, help="folder for class ids (png) and overlays (jpg)")
    parser.add_argument("--device", choices=PROVIDERS, default="cpu")
    parser.add_argument("--every", help="N or auto: run the network on some frames (needs steadyseg_every.py)")
    given = parser.parse_args()
    more = {"every": given.every} if given.every else {}
    kind = importlib.import_module("steadyseg_every").EveryClient if more else Client
    client = kind(given.model, given.device, **more)
    video = cv2.VideoCapture(int(given.source) if given.source.isdecimal() else given.source)
    if not video.isOpened():
        parser.error(f"source {given.source}: no video that OpenCV opens")
    if given.output:
        given.output.mkdir(parents=True, exist_ok=True)
    for number, (read, picture) in enumerate(iter(video.read, None)):
        if not read:
            if number == 0:
                raise ValueError(f"source {given.source}: no frame that OpenCV decodes")
            if number < (promised := int(video.get(cv2.CAP_PROP_FRAME_COUNT))):  # 0 or less for a camera
                print(f"note: the source has about {promised} frames, and {number} were decoded", file=sys.stderr)
            if given.every:
                print(f"the network ran on {client.calls} of {client.frames} frames", file=sys.stderr)
            return 0
        frame = np.ascontiguousarray(picture[..., ::-1])
        maps = client.step(frame)
        shares = np.bincount(maps["label"].ravel(), minlength=256)[: len(client.classes)] / maps["label"].size
        shown = ", ".join(f"{client.classes[place]} {shares[place]:.0%}" for place in np.argsort(-shares)[:3])
        print(f"{number}: {shown}; mean uncertainty {maps['entropy'].mean() / 255:.3f}", flush=True)
        if given.output:
            overlay = frame // 2 + client.palette[maps["label"]] // 2
            for end, values in ((".png", maps["label"]), (".jpg", overlay[..., ::-1])):  # imwrite hides a full disk
                (given.output / f"{number:06}{end}").write_bytes(cv2.imencode(end, values)[1])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Exception as error:  # for a file that is no graph, ONNX Runtime's error has several lines
        print(f"steadyseg_client: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
