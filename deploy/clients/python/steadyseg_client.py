#!/usr/bin/env python3
"""Segments a video with a file that `steadyseg export --stateful` wrote. Needs only numpy, onnxruntime and OpenCV.

    python steadyseg_client.py m.onnx drive.mp4 -o out     # class ids and overlays as pictures
    python steadyseg_client.py m.onnx --verify             # the proof of a file that was exported --with-proof

Copy this file into your program: `Client(path).step(frame)` returns the maps of the next frame. With `--device cuda`
(pip install 'onnxruntime-gpu[cuda,cudnn]') the temporal state stays on the card; this was not run on one.
"""

import argparse
import base64
import json
import sys
from pathlib import Path

import cv2
import numpy as np
import onnxruntime

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
MAPS = ("label", "confidence", "entropy", "disagreement")


class Client:
    """A file and the state of one stream; everything but the path is read from the file's metadata."""

    def __init__(self, path, device="cpu", options=None):
        """`options`: of the CUDA provider, such as {"use_tf32": "0"}."""
        gpu = [] if device == "cpu" else [(PROVIDERS[device], options or {})]
        if gpu and hasattr(onnxruntime, "preload_dlls"):
            onnxruntime.preload_dlls()  # CUDA's libraries from their wheels; prints the name of each that is missing
        self.session = onnxruntime.InferenceSession(str(path), providers=[*gpu, PROVIDERS["cpu"]])
        if PROVIDERS[device] not in self.session.get_providers():
            sys.exit(
                f"--device {device}: ONNX Runtime cannot use it; pip install 'onnxruntime-gpu[cuda,cudnn]' or use cpu"
            )
        props = self.session.get_modelmeta().custom_metadata_map
        if props.get("steadyseg_format") != "1" or props["kind"] != "stream":
            sys.exit(f"{path}: no stream; make one with steadyseg export --stateful")
        self.props, self.device = props, device
        names = "classes palette input_height input_width head_stride motion lag streams".split()
        self.classes, palette, *size, stride, self.motion, self.lag, streams = (json.loads(props[one]) for one in names)
        if streams not in (1, None):
            sys.exit(f"{path}: computes {streams} streams a call, this is a client of one; export without --streams")
        self.size, self.state_size = size, tuple(-(-side // stride) for side in size)
        self.palette = np.pad(np.array(palette, np.uint8), ((0, 256 - len(palette)), (0, 0)))
        self.outputs = [value.name for value in self.session.get_outputs()]
        states = [value for value in self.session.get_inputs() if value.name.startswith("state_")]
        zeros = {value.name: np.zeros((1, *value.shape[1:]), np.float32) for value in states}
        self.states = {name: onnxruntime.OrtValue.ortvalue_from_numpy(v, device, 0) for name, v in zeros.items()}
        self.binding, self.flow, self.previous = self.session.io_binding(), Flow(self.state_size), None

    def step(self, frame, gap=1):
        """(H, W, 3) uint8 RGB -> {name: map}, each (H, W) uint8. `gap`: source frames since the last call, 0 to begin
        anew, as after a seek; a scene cut begins anew by itself. Frames of another size begin anew."""
        if self.previous != frame.shape:
            gap, self.previous = 0, frame.shape
        motion = self.flow(frame, gap) if self.motion else {}
        outputs = self.run({"frame": frame[None], "gap": [[max(gap, 1)]], "reset": [[gap == 0]]} | motion)
        return {name: outputs[name].numpy()[0] for name in self.outputs if not name.startswith("state_")}

    def run(self, inputs):
        """One call with named inputs -> OrtValues by name. The states go from call to call where they were computed."""
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
    """The inputs `motion` and `trust`: where each pixel was in the last frame, and how far that is to be believed."""

    def __init__(self, size):
        self.size, self.last = size, None
        self.grid = np.stack(np.meshgrid(np.arange(size[1]), np.arange(size[0])), axis=-1).astype(np.float32)
        self.dis = cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_ULTRAFAST)

    def __call__(self, frame, gap):
        grey = cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY)
        grey = cv2.resize(grey, self.size[::-1], interpolation=cv2.INTER_AREA)
        last, self.last = (self.last if gap else None), grey
        if last is None:
            return {"motion": self.grid[None], "trust": np.ones((1, *self.size), np.float32)}
        motion = np.rint((self.grid + self.dis.calc(grey, last, None)) * 32) / np.float32(32)
        before = cv2.remap(last, motion, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        apart = cv2.blur(cv2.absdiff(grey, before).astype(np.float32), (5, 5))
        return {"motion": motion[None], "trust": np.exp(-np.square(apart / 20))[None]}


def enlarged(values, block, size):
    """Every value `block` times along both axes, cut to the size."""
    return values.repeat(block, 0).repeat(block, 1)[: size[0], : size[1]]


class Proof:
    """The proof that a file carries; docs/deploy.md describes its entries."""

    def __init__(self, client):
        if "proof" not in client.props:
            sys.exit("this file carries no proof; export it with --stateful --with-proof")
        self.client, self.plan = client, json.loads(client.props["proof"])

    def stored(self, name, *shape):
        kind = "<i2" if name == "motion" else "<f4" if name.startswith("probability") else "u1"
        return np.frombuffer(base64.b64decode(self.client.props[f"proof_{name}"]), kind).reshape(shape)

    def inputs(self):
        """The inputs of every turn."""
        plan, client, block = self.plan, self.client, self.plan["motion_block"]
        small = [-(-side // plan["block"]) for side in client.size]
        moved = [len(plan["turns"]), *(-(-side // block) for side in client.state_size)]
        for number, (frame, gap, reset) in enumerate(plan["turns"]):
            picture = enlarged(self.stored("frame", -1, *small, 3)[frame], plan["block"], client.size)
            inputs = {"frame": picture[None], "gap": [[gap]], "reset": [[reset]]}
            if client.motion:
                motion = enlarged(self.stored("motion", *moved, 2)[number], block, client.state_size)
                trust = enlarged(self.stored("trust", *moved)[number], block, client.state_size)
                inputs["motion"] = (client.flow.grid + motion.astype(np.float32) / np.float32(32))[None]
                inputs["trust"] = (trust.astype(np.float32) / np.float32(255))[None]
            yield inputs

    def values(self, outputs, name):
        """The sampled values of an output; the probabilities are the one after the four maps."""
        step = self.plan["probability_step" if name == "probability" else "map_step"]
        name = self.client.outputs[4] if name == "probability" else name
        return outputs[name].numpy().reshape(-1)[::step].astype(np.float64)

    def differences(self):
        """Found differences by the names of the bounds."""
        turns = list(self.inputs())
        if self.plan["draws"]:
            return self.moments_apart(turns)
        apart = {name: [] for name in (*MAPS, "probability")}
        for number, inputs in enumerate(turns):
            outputs = self.client.run(inputs)
            for name, rows in apart.items():
                rows.append(np.abs(self.values(outputs, name) - self.stored(name, len(turns), -1)[number]))
        return {
            "labels_equal": np.mean(np.array(apart["label"]) == 0),
            "probability_mean": np.mean(apart["probability"]),
            "probability_max": np.max(apart["probability"]),
            "map_levels_mean": max(np.mean(apart[name]) for name in MAPS[1:]),
        }

    def moments_apart(self, turns):
        """Random dropout: mean and variance over draws, of the last turn."""
        draws = self.plan["draws"]
        drawn = [self.values([self.client.run(one) for one in turns][-1], "probability") for _ in range(draws)]
        mean, spread = np.mean(drawn, 0), np.var(drawn, 0, ddof=1)
        expected, variance = (self.stored(name, -1) for name in ("probability", "probability_variance"))
        z2 = ((mean - expected) ** 2 / ((spread + variance) / draws))[spread + variance > 1e-8]
        return {"mean_z2": z2.mean(), "variance_difference": abs(spread.sum() / variance.sum() - 1)}

    def verify(self):
        """Prints what was found, and returns the exit code."""
        bounds, found = self.plan["bounds"], self.differences()  # NaN is within no bound
        holds = all(v >= bounds[k] if k == "labels_equal" else v <= bounds[k] for k, v in found.items())
        text = ", ".join(f"{name} {value:.6g} (bound {bounds[name]:g})" for name, value in found.items())
        print(f"{'equal' if holds else 'NOT EQUAL'} by ONNX Runtime on {self.client.device}: {text}")
        return 0 if holds else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("source", nargs="?", help="a video, pictures as %%05d.png, or a camera's number")
    parser.add_argument("-o", "--output", type=Path, help="folder for class ids (png) and overlays (jpg)")
    parser.add_argument("--device", choices=PROVIDERS, default="cpu")
    parser.add_argument("--verify", action="store_true")
    given = parser.parse_args()
    client = Client(given.model, given.device, {"use_tf32": "0"} if given.verify else {})
    if given.verify:
        return Proof(client).verify()
    if client.lag:
        parser.error(f"the maps of {given.model} come {client.lag} frames late; export it without --lag")
    video = cv2.VideoCapture(int(given.source) if str(given.source).isdecimal() else str(given.source))
    if not video.isOpened():
        parser.error(f"{given.source}: no video that OpenCV opens")
    if given.output:
        given.output.mkdir(parents=True, exist_ok=True)
    for number, (read, picture) in enumerate(iter(video.read, None)):
        if not read:
            return 0
        frame = np.ascontiguousarray(picture[..., ::-1])
        maps = client.step(frame)
        shares = np.bincount(maps["label"].ravel(), minlength=256)[: len(client.classes)] / maps["label"].size
        shown = ", ".join(f"{client.classes[place]} {shares[place]:.0%}" for place in np.argsort(-shares)[:3])
        print(f"{number}: {shown}; mean uncertainty {maps['entropy'].mean() / 255:.3f}")
        if given.output:
            cv2.imwrite(str(given.output / f"{number:06}.png"), maps["label"])
            overlay = frame // 2 + client.palette[maps["label"]] // 2
            cv2.imwrite(str(given.output / f"{number:06}.jpg"), overlay[..., ::-1])


if __name__ == "__main__":
    sys.exit(main())
