"""The graph backend: ONNX Runtime runs the whole file, maps and all; on a GPU the state never leaves it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from steadyseg.core.frame import MOTION_INPUTS, Maps
from steadyseg.core.motion import Motion, no_motion
from steadyseg.core.stage_clock import StageClock
from steadyseg.export.file.metadata import GraphMeta
from steadyseg.export.file.sessions import Arrays, import_onnxruntime, open_session, runtime_errors
from steadyseg.export.file.signature import MAPS, state_names
from steadyseg.runtime.cpu_backend import resize_map
from steadyseg.runtime.kernels.resize import resize_frame
from steadyseg.runtime.networks import onnxruntime_name


class GraphStream:
    """A graph file and the states of one stream, which stay on the device."""

    def __init__(self, data: bytes, meta: GraphMeta, device: str, options: Mapping[str, str] | None = None) -> None:
        """`options`: see `open_session`."""
        self._session, self.device = open_session(data, device, options)
        self._follows, self.state_size = meta.method.motion, meta.state_size
        states = (value for value in self._session.get_inputs() if value.name.startswith("state_"))
        self._zeros = {one.name: np.zeros(one.shape, element_type(one.type)) for one in states}
        self._binding: Binding | None = None

    def __call__(self, picture: np.ndarray, gap: int, motion: Motion | None, keep_probs: bool = False) -> Arrays:
        """Computes the next picture (1, h, w, 3) uint8; returns the outputs but the states.

        Gap and motion are as in `core.segmenter.Backend.compute`. `keep_probs`: return `probs`, the mean
        probabilities, too.
        """
        inputs = {
            "frame": picture,
            "gap": np.full((1, 1), max(gap, 1), np.float32),
            "reset": np.full((1, 1), gap == 0, np.float32),
        }
        if self._follows:
            moved = motion or no_motion(self.state_size)
            inputs |= {name: one[None] for name, one in zip(MOTION_INPUTS, (moved.source, moved.trust), strict=True)}
        with runtime_errors(f"ONNX Runtime cannot run the graph on frames of {picture.shape}"):
            if self._binding is None or not self._binding.fits(inputs, keep_probs):
                states = self._binding.states() if self._binding else self._zeros
                self._binding = Binding(self._session, self.device, inputs, states, keep_probs)
            return self._binding.run(inputs)


class Binding:
    """The places in memory of a call's inputs, outputs and states, for inputs of fixed shapes.

    They are made once, so that a call copies its inputs to the device and allocates nothing there. Every state has two
    places: a call reads one and writes the other, and the next call swaps them.
    """

    def __init__(self, session: Any, device: str, inputs: Arrays, states: Arrays, keep_probs: bool) -> None:
        values = import_onnxruntime().OrtValue
        self._session, self._turn, self._keeps_probs = session, 0, keep_probs
        self._inputs = {name: values.ortvalue_from_numpy(value.copy(), device, 0) for name, value in inputs.items()}
        self._kinds = {name: (value.shape, value.dtype) for name, value in inputs.items()}
        self._outputs: dict[str, Any] = {}
        for one in session.get_outputs():
            if not one.name.startswith("state_") and (keep_probs or one.name != "probs"):
                is_map = one.type == "tensor(uint8)"
                shape = inputs["frame"].shape[:3] if is_map else one.shape
                self._outputs[one.name] = values.ortvalue_from_shape_and_type(shape, element_type(one.type), device, 0)
        self._states = [
            {name: values.ortvalue_from_numpy(value.copy(), device, 0) for name, value in states.items()}
            for _ in range(2)
        ]
        self._bindings = [self._bound(*self._states), self._bound(*self._states[::-1])]

    def _bound(self, before: dict[str, Any], after: dict[str, Any]) -> Any:
        binding = self._session.io_binding()
        for name, value in (self._inputs | before).items():
            binding.bind_ortvalue_input(name, value)
        carried = {name.removesuffix("_in") + "_out": value for name, value in after.items()}
        for name, value in (self._outputs | carried).items():
            binding.bind_ortvalue_output(name, value)
        return binding

    def fits(self, inputs: Arrays, keep_probs: bool) -> bool:
        """True for inputs of the shapes and types that the places were made for, and the same outputs."""
        kinds = {name: (value.shape, value.dtype) for name, value in inputs.items()}
        return kinds == self._kinds and keep_probs == self._keeps_probs

    def states(self) -> Arrays:
        """Returns copies of the states after the last call, by the names of the inputs."""
        return {name: np.array(value.numpy()) for name, value in self._states[self._turn].items()}

    def run(self, inputs: Arrays) -> Arrays:
        """Computes one call; returns copies of the outputs but the states, which stay on the device."""
        for name, value in inputs.items():
            self._inputs[name].update_inplace(np.ascontiguousarray(value))
        self._session.run_with_iobinding(self._bindings[self._turn])
        self._turn = 1 - self._turn
        found = dict(self._outputs)
        if self._keeps_probs and "probs" not in found:  # the first state has them
            found["probs"] = self._states[self._turn][state_names(1, "in")[0]]
        return {name: np.array(value.numpy()) for name, value in found.items()}


class GraphBackend:
    """A graph file and its state, for one stream; see `core.segmenter.Backend`."""

    def __init__(self, data: bytes, meta: GraphMeta, device: str, *, keep_probs: bool = False, why: str = "") -> None:
        self.classes, self.method, self.size = meta.classes, meta.method, (meta.height, meta.width)
        self.head_stride, self.reference = meta.head_stride, meta.reference
        self.keep_probs, self.why, self.clock = keep_probs, why, StageClock()
        self._stream = GraphStream(data, meta, device)
        self.name, self.device = onnxruntime_name(meta.precision), self._stream.device

    def state_size(self, height: int, width: int) -> tuple[int, int]:
        return self._stream.state_size

    def compute(self, image: np.ndarray, gap: int, motion: Motion | None) -> tuple[Maps, None]:
        size = image.shape[:2]
        with self.clock.measure("preprocess"):
            picture = resize_frame(image, self.size)  # the graph could resize too, but up to one level of 255 off
        with self.clock.measure("smoothing"):
            with self.clock.measure("network"):  # smoothing and maps are part of the graph
                outputs = self._stream(picture, gap, motion, self.keep_probs)
            told: dict[str, Any] = {}
            if "familiarity" in outputs:
                energy = resize_map(outputs["energy"][0], size, is_label=False)
                told = {name: outputs[name].item() for name in ("familiarity", "expected_accuracy")} | {
                    "energy": energy
                }
            label, confidence, entropy, disagreement = (
                resize_map(outputs[name][0], size, is_label=name == "label") for name in MAPS
            )
            probs = outputs["probs"][0].astype(np.float32) if self.keep_probs else None
            return Maps(label, confidence, entropy, disagreement, probs, **told), None


def element_type(name: str) -> np.dtype[Any]:
    """tensor(float16) -> numpy.float16."""
    return np.dtype({"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(uint8)": np.uint8}[name])
