"""The graph executor: ONNX Runtime runs the whole file, maps and all; on a GPU the state never leaves it."""

from typing import Any

import numpy as np

from core.continuity import Continuity
from core.errors import InputError
from core.frame import Frame, Maps
from core.segmenter import Method
from core.timing import StageClock
from export.cpu_segmenter import resize_frame, resize_map
from export.metadata import StreamMeta
from export.networks import onnxruntime_name
from export.onnxruntime_session import open_session
from export.signature import MAPS


class GraphSegmenter:
    """A `Segmenter` (core/segmenter.py) made of one of our graph files."""

    def __init__(self, data: bytes, meta: StreamMeta, method: Method, device: str, *, keep_probs: bool = False) -> None:
        self.classes, self.method, self.keep_probs = meta.classes, method, keep_probs
        self._session, self.device = open_session(data, device)
        self.executor = onnxruntime_name(meta.precision)
        self._states = [value for value in self._session.get_inputs() if value.name.startswith("state_")]
        outputs = [value.name for value in self._session.get_outputs()]
        self._probs_name = "probs" if "probs" in outputs else "state_00_out"
        self._wanted = [n for n in outputs if n != "probs" or keep_probs]
        self.clock = StageClock()
        self._continuity = Continuity()
        self.resets = self._continuity.resets
        self._carried: dict[str, Any] = {}

    def reset(self) -> None:
        """Forgets all earlier frames."""
        self._continuity.forget()

    def step(self, frame: Frame) -> Maps:
        """Segments one frame; see `Maps` for what comes out."""
        gap = self._continuity.follow(frame)
        with self.clock.measure("preprocess"):  # the graph could resize too, to within one level of 255
            picture = resize_frame(frame.image, (self.method.height, self.method.width))
        with self.clock.measure("network"):  # smoothing and maps are part of the graph
            binding = self._session.io_binding()
            binding.bind_cpu_input("frame", picture)
            binding.bind_cpu_input("gap", np.array([max(gap, 1)], np.float32))
            binding.bind_cpu_input("reset", np.array([gap == 0], np.float32))
            for state in self._states:
                value = self._carried.get(state.name)
                if value is None:
                    binding.bind_cpu_input(state.name, np.zeros(state.shape, element_type(state.type)))
                else:
                    binding.bind_ortvalue_input(state.name, value)
            for name in self._wanted:
                binding.bind_output(name, "cuda" if name.startswith("state_") and self.device != "cpu" else "cpu")
            try:
                self._session.run_with_iobinding(binding)
            except Exception as error:  # its errors share no base class but Exception
                first = str(error).strip().splitlines()[0]
                raise InputError(
                    f"ONNX Runtime cannot run the graph on a frame of {frame.image.shape} ({first})"
                ) from error
            outputs = dict(zip(self._wanted, binding.get_outputs(), strict=True))
            self._carried = {s.name: outputs[s.name.removesuffix("_in") + "_out"] for s in self._states}
            size = frame.image.shape[0], frame.image.shape[1]
            label, confidence, entropy, disagreement = (
                resize_map(outputs[name].numpy()[0], size, is_label=name == "label") for name in MAPS
            )
        probs = outputs[self._probs_name].numpy()[0].astype(np.float32) if self.keep_probs else None
        return Maps(label, confidence, entropy, disagreement, probs)


def element_type(name: str) -> np.dtype[Any]:
    """tensor(float16) -> numpy.float16."""
    return np.dtype({"tensor(float)": np.float32, "tensor(float16)": np.float16}[name])
