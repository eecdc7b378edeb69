"""Distillation: a small network learns from the mean softmax of teachers besides the labels (arXiv 1503.02531).

The teachers see every whole training picture and its mirror image once. Their mean probabilities are kept in 8 bits,
0.6 GB for CamVid's images at 360x480. They are zoomed, cropped and flipped with the label. Void pixels count too: there
the teachers are the only source.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.method import MethodOptions
from steadyseg.core.picture_size import network_size
from steadyseg.core.preprocess import resize
from steadyseg.core.system.machine import autocast, training_precision
from steadyseg.seg.of_model import streaming_module
from steadyseg.seg.pretrained import read_segmenter


class Teacher:
    """Callable (image (H, W, 3) uint8) -> (K, h, w) uint8: the teachers' mean probabilities times 255.

    h is the student's height. Each teacher sees pictures at the height of its own training. At 224 pixels a network of
    360 pixels would miss small things.
    """

    def __init__(self, models: Sequence[str | Path], classes: ClassList, height: int, device: torch.device) -> None:
        """Opens the teachers with dropout off; each normalises pictures as in its own training."""
        self.modules, self.heights = [], list[int]()
        for model in models:
            teacher = read_segmenter(model)
            if teacher.meta.classes.names != classes.names:
                raise InputError(
                    f"the teacher {model} has other classes than the data; train both on the same class list"
                )
            method = MethodOptions(mode="dnn").resolve(teacher.meta)
            self.modules.append(streaming_module(teacher, method).to(device).eval())
            self.heights.append(teacher.meta.height)
        self.height, self.device = height, device
        self.precision = training_precision(device)

    def __call__(self, image: np.ndarray) -> Tensor:
        whole, (rows, columns) = torch.from_numpy(image).permute(2, 0, 1)[None], image.shape[:2]
        size, means = network_size(rows, columns, self.height), []
        with torch.inference_mode(), autocast(self.device.type, self.precision):
            for module, height in zip(self.modules, self.heights, strict=True):
                picture = resize(whole, network_size(rows, columns, height))
                both = torch.cat([picture, picture.flip(-1)]).to(self.device).float()
                probs = module.predictor(module.normalize(both).to(memory_format=torch.channels_last)).probs
                mean = (probs[:1] + probs[1:].flip(-1)) / 2
                same = mean.shape[-2:] == size
                means.append(mean if same else F.interpolate(mean, size, mode="bilinear", antialias=True))
        return torch.stack(means).mean(0)[0].mul(255).round_().to(torch.uint8).cpu()


def soft_loss(logits: Tensor, teacher_probs: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the class-weighted cross-entropy to the teachers' probabilities, summed, and the sum of the weights.

    `teacher_probs` is (B, K, h, w), times 255; it is 0 in padding, which therefore does not count.
    """
    weighted = teacher_probs.to(logits.dtype) * weights.view(1, -1, 1, 1) / 255.0
    return -(weighted * F.log_softmax(logits, dim=1)).sum(), weighted.sum()
