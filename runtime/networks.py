"""Runtimes of the network alone, from a uint8 frame of its size to logits: OpenVINO or ONNX Runtime on the CPU."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from steadyseg.core.frame import FrameScores
from steadyseg.core.seeds import masks_seed
from steadyseg.core.system.machine import onednn_may_use_bf16
from steadyseg.export.file.sessions import compile_openvino, cpu_session, import_onnxruntime, openvino_core
from steadyseg.runtime.converted import Converted
from steadyseg.runtime.kernels.dropout_masks import DropoutMasks


class FrameNetwork:
    """A runtime with the network alone: (1, h, w, 3) uint8 -> (K, h / s, w / s) float32 logits, valid until the next
    call."""

    backend: str
    """Name, version and number format, for the report."""
    scores: FrameScores | None = None
    """Familiarity in the last pass; None where the network has no statistics of its training domain."""

    def outputs(self, frame: np.ndarray) -> list[np.ndarray]:
        """Runs one pass: the logits, then score and energy if the network has familiarity statistics."""
        raise NotImplementedError

    def __call__(self, frame: np.ndarray) -> np.ndarray:
        return next(self.passes(frame, 1))

    def passes(self, frame: np.ndarray, count: int) -> Iterator[np.ndarray]:
        """Yields the logits of so many dropout passes, each valid until the next one."""
        for _ in range(count):
            yield self.logits(self.outputs(frame))

    def logits(self, outputs: list[np.ndarray]) -> np.ndarray:
        """Keeps the scores among the outputs, their energy copied out of the runtime's memory; returns the logits."""
        logits, *scores = outputs
        self.scores = FrameScores(float(scores[0]), scores[1].copy()) if scores else None
        return logits


def cpu_has_bf16() -> bool:
    """True if OpenVINO computes faster in bf16 than in fp32 here."""
    return onednn_may_use_bf16() and "BF16" in openvino_core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


class OpenVinoNetwork(FrameNetwork):
    """OpenVINO on the CPU, one request at a time, all cores of this process."""

    def __init__(self, model: Any, precision: str, masks: DropoutMasks | None = None) -> None:
        """`masks`: inputs after the frame, drawn for every call; a model without such inputs draws masks itself."""
        self._masks, self.backend = masks, openvino_name(precision)
        self._request = _request(model, precision)

    def outputs(self, frame: np.ndarray) -> list[np.ndarray]:
        masks = self._masks.draw() if self._masks else []
        self._request.infer([frame, *masks], share_inputs=True)
        return [tensor.data[0] for tensor in self._request.output_tensors]


class OpenVinoPasses(FrameNetwork):
    """Several dropout passes on OpenVINO: the part before the first dropout layer is computed once per frame."""

    def __init__(self, shared: Any, drawn: Any, precision: str, masks: DropoutMasks) -> None:
        """`shared` maps the frame to tensors; `drawn` maps these tensors and the dropout masks to logits."""
        self._masks, self.backend = masks, openvino_name(precision)
        self._shared, self._drawn = _request(shared, precision), _request(drawn, precision)
        self._count = len(self._shared.model_outputs)
        for place in range(self._count):  # the same memory on both sides
            self._drawn.set_input_tensor(place, self._shared.get_output_tensor(place))

    def passes(self, frame: np.ndarray, count: int) -> Iterator[np.ndarray]:
        self._shared.infer([frame], share_inputs=True)
        for _ in range(count):
            masks = {self._count + place: mask for place, mask in enumerate(self._masks.draw())}
            self._drawn.infer(masks, share_inputs=True)
            yield self.logits([tensor.data[0] for tensor in self._drawn.output_tensors])


class OnnxRuntimeNetwork(FrameNetwork):
    """ONNX Runtime on the CPU."""

    def __init__(self, data: bytes, precision: str) -> None:
        self._session, self.backend = cpu_session(data), onnxruntime_name(precision)

    def outputs(self, frame: np.ndarray) -> list[np.ndarray]:
        return [found[0] for found in self._session.run(None, {"frame": frame})]


def _request(model: Any, precision: str) -> Any:
    """The compiled model's one request."""
    # An int8 network has float layers too. With them in bf16 a frame takes 0.33 of fp32's time, with f32 0.40, for the
    # same labels.
    hint = {"fp32": "f32", "bf16": "bf16", "int8": "bf16" if cpu_has_bf16() else "f32"}[precision]
    return compile_openvino(model, hint).create_infer_request()


def openvino_name(precision: str) -> str:
    """The name in reports, such as openvino 2026.4.1 bf16."""
    openvino_core()
    import openvino

    return f"openvino {openvino.__version__.split('-')[0]} {precision}"


def onnxruntime_name(precision: str) -> str:
    """The name in reports, such as onnxruntime 1.31.1 fp32."""
    return f"onnxruntime {import_onnxruntime().__version__} {precision}"


def frame_network(converted: Converted, precision: str) -> FrameNetwork:
    """Compiles a converted network; the host draws its dropout masks."""
    rates = converted.rates
    masks = DropoutMasks(converted.mask_shapes, rates, masks_seed()) if rates else None
    if len(converted.models) == 1:
        return OpenVinoNetwork(converted.models[0], precision, masks)
    assert masks is not None  # several passes draw
    shared, drawn = converted.models
    return OpenVinoPasses(shared, drawn, precision, masks)
