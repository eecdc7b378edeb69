"""Distillation: a small network learns from the mean softmax of teachers besides the labels (arXiv 1503.02531).

The teachers see every whole training picture and its mirror image once. Their probabilities are zoomed, cropped and
flipped with the label. Void pixels count too: there the teachers are the only source.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from core.classes import ClassList
from core.errors import InputError
from core.method import MethodOptions
from core.preprocess import network_size
from seg.data.augment import to_tensors
from seg.pretrained import read_segmenter
from seg.torch_executor import torch_executor

STRIDE = 2
"""Subsampling of the stored probabilities; with 8 bits each, CamVid train takes 166 MB instead of 2.6 GB."""


class Teacher:
    """Callable (image (H, W, 3) uint8) -> (K, h / 2, w / 2) uint8: the teachers' mean probabilities times 255."""

    def __init__(self, models: Sequence[str | Path], classes: ClassList, height: int, device: torch.device) -> None:
        """Opens the teachers with dropout off; each normalises pictures as in its own training, all at one height."""
        self.modules = []
        for model in models:
            teacher = read_segmenter(model)
            if teacher.meta.classes != classes:
                raise InputError(
                    f"the teacher {model} has other classes than the data; train both on the same class list"
                )
            method = MethodOptions(mode="dnn").resolve(teacher.meta)
            self.modules.append(torch_executor(teacher, method, device=device).module)
        self.height, self.device = height, device

    def __call__(self, image: np.ndarray) -> Tensor:
        height, width = image.shape[:2]
        no_label = np.zeros((height, width), np.uint8)
        picture, _ = to_tensors(image, no_label, *network_size(height, width, self.height))
        both = torch.stack([picture, picture.flip(-1)]).to(self.device).float()
        means = []
        with torch.inference_mode(), torch.autocast(self.device.type, torch.bfloat16):
            for module in self.modules:
                probs = module.predictor(module.normalize(both).to(memory_format=torch.channels_last)).probs
                means.append((probs[:1] + probs[1:].flip(-1)) / 2)
        mean = torch.stack(means).mean(0)
        return F.avg_pool2d(mean, STRIDE, ceil_mode=True)[0].mul(255).round_().to(torch.uint8).cpu()


def soft_loss(logits: Tensor, teacher_probs: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the class-weighted cross-entropy to the teachers' probabilities, summed, and the sum of the weights.

    `teacher_probs` is (B, K, h, w), times 255; it is 0 in padding, which therefore does not count.
    """
    weighted = teacher_probs.to(logits.dtype) * weights.view(1, -1, 1, 1) / 255.0
    return -(weighted * F.log_softmax(logits, dim=1)).sum(), weighted.sum()
