"""Runs a classifier's graph file: raw pictures in, predictions out, by ONNX Runtime or OpenVINO."""

import math

import numpy as np
import torch

from steadyseg.core.errors import InputError
from steadyseg.core.prediction import Prediction
from steadyseg.export.file.onnx_file import OnnxFile
from steadyseg.export.file.sessions import open_session, openvino_runner, require_runtime, runner_of
from steadyseg.runtime.networks import onnxruntime_name, openvino_name


class GraphClassifier:
    """An image classifier's graph file with its session; `meta` describes its pictures, classes and method."""

    def __init__(self, file: OnnxFile, *, backend: str = "auto", device: str = "auto") -> None:
        """backend: auto (onnxruntime), onnxruntime or openvino. InputError for a file that holds no classifier."""
        require_runtime(backend, device)
        self.meta = file.meta
        if self.meta.kind != "classifier":
            raise InputError(f"{file.path}: holds a segmentation network; expected an image classifier")
        if backend == "openvino":
            self.backend, self.device = openvino_name("fp32"), "cpu"
            self._run = openvino_runner(file.data)
            return
        session, self.device = open_session(file.data, device)
        self.backend = onnxruntime_name(self.meta.precision)
        self._run = runner_of(session)

    def predict(self, pictures: np.ndarray) -> Prediction:
        """Predicts pictures (B, s, s, 3) uint8 RGB: probabilities (B, K)."""
        side, shape = self.meta.height, pictures.shape
        if pictures.dtype != np.uint8 or len(shape) != 4 or shape[1:] != (side, side, 3) or not shape[0]:
            raise InputError(
                f"expected uint8 RGB pictures (B, {side}, {side}, 3), got {pictures.dtype} {shape}; cut and resize "
                f"them first"
            )
        outputs = self._run({"image": np.ascontiguousarray(pictures)})
        largest = math.log(len(self.meta.classes))
        expected = (outputs["entropy"] - outputs["disagreement"]) * largest
        return Prediction(torch.from_numpy(outputs["probs"]), torch.from_numpy(expected))
