"""The graph executor: ONNX Runtime runs the whole file, maps and all; on a GPU the state never leaves it."""

from typing import Any

import numpy as np

from core.frame import MOTION_INPUTS, Maps
from core.motion import Motion, no_motion
from core.reference import ReferenceScores
from core.segmenter import StageClock
from export.file.metadata import GraphMeta
from export.file.signature import MAPS
from export.run.cpu import resize_frame, resize_map
from export.run.networks import onnxruntime_name
from export.run.sessions import open_session, runtime_errors


class GraphExecutor:
    """A graph file and its state; see `core.segmenter.Executor`."""

    reference: ReferenceScores | None = None  # the graph compares scores itself

    def __init__(self, data: bytes, meta: GraphMeta, device: str, *, keep_probs: bool = False, why: str = "") -> None:
        self.classes, self.method, self.size = meta.classes, meta.method, (meta.height, meta.width)
        self.keep_probs, self.why, self.clock = keep_probs, why, StageClock()
        self._session, self.device = open_session(data, device)
        self._state_size = (-(-meta.height // meta.head_stride), -(-meta.width // meta.head_stride))
        self.name = onnxruntime_name(meta.precision)
        self._states = [value for value in self._session.get_inputs() if value.name.startswith("state_")]
        self._outputs = [value.name for value in self._session.get_outputs()]
        self._carried: dict[str, Any] = {}

    def state_size(self, height: int, width: int) -> tuple[int, int]:
        return self._state_size

    def compute(self, image: np.ndarray, gap: int, motion: Motion | None) -> tuple[Maps, None]:
        size = image.shape[:2]
        with self.clock.measure("preprocess"):
            picture = resize_frame(image, self.size)  # the graph could resize too, to within one level of 255
        with self.clock.measure("smoothing"):
            with self.clock.measure("network"):  # smoothing and maps are part of the graph
                outputs = self._run(picture, gap, motion)
            novelty: dict[str, Any] = {}
            if "novelty" in outputs:
                novel_regions = resize_map(outputs["novel_regions"].numpy()[0], size, is_label=False)
                share, accuracy = (float(outputs[name].numpy()[0]) for name in ("novelty", "expected_accuracy"))
                novelty = {"novelty": share, "expected_accuracy": accuracy, "novel_regions": novel_regions}
            label, confidence, entropy, disagreement = (
                resize_map(outputs[name].numpy()[0], size, is_label=name == "label") for name in MAPS
            )
            probs = None
            if self.keep_probs:
                name = "probs" if "probs" in self._outputs else "state_00_out"
                probs = outputs[name].numpy()[0].astype(np.float32)
            return Maps(label, confidence, entropy, disagreement, probs, **novelty), None

    def _run(self, picture: np.ndarray, gap: int, motion: Motion | None) -> dict[str, Any]:
        wanted = [name for name in self._outputs if name != "probs" or self.keep_probs]
        binding = self._session.io_binding()
        binding.bind_cpu_input("frame", picture)
        binding.bind_cpu_input("gap", np.array([max(gap, 1)], np.float32))
        binding.bind_cpu_input("reset", np.array([gap == 0], np.float32))
        if self.method.motion:
            moved = motion or no_motion(self._state_size)
            for name, values in zip(MOTION_INPUTS, (moved.source, moved.trust), strict=True):
                binding.bind_cpu_input(name, np.ascontiguousarray(values))
        for state in self._states:
            value = self._carried.get(state.name)
            if value is None:
                binding.bind_cpu_input(state.name, np.zeros(state.shape, element_type(state.type)))
            else:
                binding.bind_ortvalue_input(state.name, value)
        for name in wanted:
            binding.bind_output(name, "cuda" if name.startswith("state_") and self.device != "cpu" else "cpu")
        with runtime_errors(f"ONNX Runtime cannot run the graph on a frame of {picture.shape}"):
            self._session.run_with_iobinding(binding)
        outputs = dict(zip(wanted, binding.get_outputs(), strict=True))
        self._carried = {s.name: outputs[s.name.removesuffix("_in") + "_out"] for s in self._states}
        return outputs


def element_type(name: str) -> np.dtype[Any]:
    """tensor(float16) -> numpy.float16."""
    return np.dtype({"tensor(float)": np.float32, "tensor(float16)": np.float16}[name])
