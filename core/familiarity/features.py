"""A network that returns the features of its stages too, for the fits of familiarity."""

import numpy as np
import torch
from torch import Tensor, nn

from steadyseg.core.familiarity.head import FrameStatistics
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.preprocess import Normalize, resize
from steadyseg.core.stages import StageFeatures


class FeatureExtractor:
    """Runs a network and returns its logits and the features of its stages; InputError for an unknown stage."""

    def __init__(self, network: nn.Module, meta: CheckpointMeta, stages: tuple[str, ...], device: torch.device) -> None:
        self.network, self.stages, self.device = network.to(device).eval(), stages, device
        self.taps, self.normalize = StageFeatures(network, stages), Normalize(meta.mean, meta.std).to(device)

    @torch.inference_mode()
    def __call__(self, images: np.ndarray, size: tuple[int, int]) -> tuple[Tensor, list[Tensor]]:
        """(B, H, W, 3) uint8, resized to `size` (h, w) -> logits (B, K, ...) and the features (B, C, ...) of each
        stage."""
        pixels = torch.from_numpy(np.ascontiguousarray(images)).to(self.device).permute(0, 3, 1, 2)
        return self.network(self.normalize(resize(pixels, size))), self.taps.take()


def read_statistics(head: FrameStatistics, logits: Tensor, features: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Statistics (B, S) and the energies (B, R) of a batch of pictures."""
    return head.statistics(head.subsample(features), logits).cpu().double(), head.energy(logits).cpu().flatten(1)
