"""The graph executor: ONNX Runtime runs the whole file, maps and all; on a GPU the state never leaves it."""

from collections.abc import Collection, Mapping, Sequence
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


class GraphStreams:
    """The streams that a call of a graph file computes, and their states, which stay on the device."""

    def __init__(
        self, data: bytes, meta: GraphMeta, device: str, count: int = 1, options: Mapping[str, str] | None = None
    ) -> None:
        """`options`: see `open_session`."""
        self._session, self.device = open_session(data, device, options)
        self.count, self._follows = count, meta.method.motion
        self.state_size = meta.state_size
        self.outputs = [value.name for value in self._session.get_outputs()]
        states = (value for value in self._session.get_inputs() if value.name.startswith("state_"))
        self._zeros = {one.name: np.zeros((count, *one.shape[1:]), element_type(one.type)) for one in states}
        self._carried: dict[str, Any] = {}

    def __call__(
        self,
        pictures: np.ndarray,
        gaps: Sequence[int],
        motions: Sequence[Motion | None],
        without: Collection[str] = (),
    ) -> dict[str, Any]:
        """Computes the next picture of each stream, (count, h, w, 3) uint8; returns the outputs but those in `without`.

        Gaps and motions are those of `core.segmenter.Executor.compute`, one for each stream.
        """
        wanted = [name for name in self.outputs if name not in without]
        binding = self._session.io_binding()
        binding.bind_cpu_input("frame", pictures)
        binding.bind_cpu_input("gap", np.array([[max(gap, 1)] for gap in gaps], np.float32))
        binding.bind_cpu_input("reset", np.array([[gap == 0] for gap in gaps], np.float32))
        if self._follows:
            moved = [motion or no_motion(self.state_size) for motion in motions]
            for name, field in zip(MOTION_INPUTS, ("source", "trust"), strict=True):
                binding.bind_cpu_input(name, np.stack([getattr(motion, field) for motion in moved]))
        for name, zeros in self._zeros.items():
            if name in self._carried:
                binding.bind_ortvalue_input(name, self._carried[name])
            else:
                binding.bind_cpu_input(name, zeros)
        for name in wanted:
            binding.bind_output(name, "cuda" if name.startswith("state_") and self.device != "cpu" else "cpu")
        with runtime_errors(f"ONNX Runtime cannot run the graph on frames of {pictures.shape}"):
            self._session.run_with_iobinding(binding)
        found = dict(zip(wanted, binding.get_outputs(), strict=True))
        self._carried = {name: found[name.removesuffix("_in") + "_out"] for name in self._zeros}
        return found


class GraphExecutor:
    """A graph file and its state, for one stream; see `core.segmenter.Executor`."""

    reference: ReferenceScores | None = None  # the graph compares scores itself

    def __init__(self, data: bytes, meta: GraphMeta, device: str, *, keep_probs: bool = False, why: str = "") -> None:
        self.classes, self.method, self.size = meta.classes, meta.method, (meta.height, meta.width)
        self.keep_probs, self.why, self.clock = keep_probs, why, StageClock()
        self._streams = GraphStreams(data, meta, device)
        self.name, self.device = onnxruntime_name(meta.precision), self._streams.device

    def state_size(self, height: int, width: int) -> tuple[int, int]:
        return self._streams.state_size

    def compute(self, image: np.ndarray, gap: int, motion: Motion | None) -> tuple[Maps, None]:
        size = image.shape[:2]
        with self.clock.measure("preprocess"):
            picture = resize_frame(image, self.size)  # the graph could resize too, to within one level of 255
        with self.clock.measure("smoothing"):
            with self.clock.measure("network"):  # smoothing and maps are part of the graph
                outputs = self._streams(picture, [gap], [motion], () if self.keep_probs else ("probs",))
            novelty: dict[str, Any] = {}
            if "novelty" in outputs:
                energy = resize_map(outputs["energy"].numpy()[0], size, is_label=False)
                share, accuracy = (outputs[name].numpy().item() for name in ("novelty", "expected_accuracy"))
                novelty = {"novelty": share, "expected_accuracy": accuracy, "energy": energy}
            label, confidence, entropy, disagreement = (
                resize_map(outputs[name].numpy()[0], size, is_label=name == "label") for name in MAPS
            )
            probs = None
            if self.keep_probs:
                name = "probs" if "probs" in outputs else "state_00_out"
                probs = outputs[name].numpy()[0].astype(np.float32)
            return Maps(label, confidence, entropy, disagreement, probs, **novelty), None


def element_type(name: str) -> np.dtype[Any]:
    """tensor(float16) -> numpy.float16."""
    return np.dtype({"tensor(float)": np.float32, "tensor(float16)": np.float16}[name])
