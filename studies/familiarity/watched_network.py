"""A network with familiarity statistics, run on one picture after the other as the page does."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from steadyseg.core.classes import CAMVID
from steadyseg.core.dropout import set_dropout_active
from steadyseg.core.errors import InputError
from steadyseg.core.familiarity.head import FamiliarityHead
from steadyseg.core.familiarity.statistics import STRIDE, subsample, subsampling_step
from steadyseg.core.familiarity.stored import familiarity_head
from steadyseg.core.method import MethodOptions
from steadyseg.core.picture_size import network_size
from steadyseg.core.preprocess import Normalize, enlarge, nearest, resize
from steadyseg.core.stages import StageFeatures
from steadyseg.runtime.conversion import openvino_model
from steadyseg.runtime.networks import OpenVinoNetwork, cpu_has_bf16
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.studies.familiarity.samples import Sample


class FeatureOutputs(nn.Module):
    """(1, 3, h, w) normalised -> logits, score, and the mean features of the scored stages."""

    def __init__(self, network: nn.Module, head: FamiliarityHead) -> None:
        super().__init__()
        self.network, self.head, self.taps = network, head, StageFeatures(network, head.names)

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        logits = self.network(images)
        own = self.taps.take()
        scores = self.head(own, logits)
        height = images.shape[-2]
        means = (subsample(one, subsampling_step(height, one)).float().mean((2, 3)) for one in own)
        return logits, scores.score, *means


class WatchedNetwork:
    """A checkpoint that carries its statistics, by OpenVINO in the page's number format."""

    def __init__(self, model: str | Path) -> None:
        opened = read_segmenter(model)
        network, meta = opened.network(), opened.meta
        head = familiarity_head(opened, MethodOptions(mode="dnn").resolve(meta))
        if head is None:
            raise InputError(f"{model} has no familiarity statistics; calibrate it with --familiarity")
        self.meta = meta
        set_dropout_active(network, False)
        self.outputs = FeatureOutputs(network.to(memory_format=torch.channels_last), head).eval()
        self.normalize = Normalize(meta.mean, meta.std)
        self.precision = "bf16" if cpu_has_bf16() else "fp32"
        self.compiled: dict[tuple[int, int], Any] = {}

    @torch.inference_mode()
    def __call__(self, image: np.ndarray) -> tuple[list[Tensor], tuple[int, int]]:
        """Returns the outputs of `FeatureOutputs`, and the size at which the network saw the picture."""
        pixels = torch.from_numpy(np.ascontiguousarray(image))[None].permute(0, 3, 1, 2)
        height, width = image.shape[:2]
        size = network_size(height, width, self.meta.height)
        if size not in self.compiled:
            model = openvino_model(self.outputs, [torch.zeros(1, 3, *size)])
            self.compiled[size] = OpenVinoNetwork(model, self.precision)._request
        request = self.compiled[size]
        request.infer([self.normalize(resize(pixels, size)).contiguous().numpy()], share_inputs=True)
        return [torch.from_numpy(tensor.data.copy()) for tensor in request.output_tensors], size


def measure_sample(network: WatchedNetwork, sample: Sample) -> dict[str, Any]:
    """Returns the record of a picture: scores, pooled features, and the accuracy where it has a label."""
    (logits, score, *pooled), size = network(sample.image)
    logits = enlarge(logits, size)
    seen = logits[..., ::STRIDE, ::STRIDE].float()
    logs = seen.log_softmax(1)
    record: dict[str, Any] = {
        "kind": sample.kind,
        "name": sample.name,
        "score": float(score),
        "entropy": float(-(logs.exp() * logs).sum(1).mean()),
        "max_logit": float(seen.amax(1).mean()),
        "energy": float(torch.logsumexp(seen, 1).mean()),
        "pooled": {stage: means[0].numpy() for stage, means in zip(network.outputs.head.names, pooled, strict=True)},
    }
    if sample.label is not None:
        label = nearest(torch.from_numpy(sample.label)[None], size)[0]
        kept = label != CAMVID.void_id
        record["accuracy"] = float((logits[0].argmax(0) == label)[kept].float().mean())
    return record
