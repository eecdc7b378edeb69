"""Temporal consistency loss: two frames of one scene should get equal predictions where they show the same things.

The loss of Liu et al. 2020 (arXiv 2002.11433) is the squared difference of the class probabilities, one frame's warped
onto the other's. In the paper the second frame is an unlabelled frame of the video, and the warp is optical flow.
CamVid's stills have no video beside them, so a virtual camera makes the second frame from the still (`moving_stills`).
Its warp is exact, but objects that move by themselves are not covered. Inference costs the same. Each frame has dropout
masks of its own, so the loss lowers the disagreement between dropout passes as well.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from steadyseg.seg.data.moving_stills import REFERENCE_WIDTH, VAL_CAMERA, camera_steps, similarity

MAX_GAP = 3
"""Most steps of the camera between the two frames; 3 are 0.2 s at CamVid's val rate."""
PER_VIEW = 4
"""One picture of every 4 in a batch gets a second view; a view of each would double the time of a step."""


@dataclass(frozen=True)
class WithViews:
    """Targets of a batch whose last pictures are second views of its first pictures."""

    targets: Tensor
    """(B, ...): targets of the first B pictures; the views have no targets."""
    warps: Tensor
    """(P, 2, 3): affine maps from coordinates in a view to coordinates in its picture, as `affine_grid` takes them."""

    def __len__(self) -> int:
        return len(self.targets)

    def to(self, device: torch.device, non_blocking: bool = False) -> "WithViews":
        return WithViews(self.targets.to(device, non_blocking=non_blocking), self.warps.to(device))


def add_views(images: Tensor, targets: Tensor, seed: int) -> tuple[Tensor, WithViews]:
    """Appends P second views by a moving camera to images (B, 3, h, w) of 0..255; returns (B + P, 3, h, w) and targets.

    Each view has exposure and sensor noise of its own. Beyond a picture's edge the view is mirrored; the loss ignores
    these pixels.
    """
    random = np.random.default_rng(seed)
    count = max(1, len(images) // PER_VIEW)
    warps = torch.stack([_warp(random, *images.shape[-2:]) for _ in range(count)]).to(images.device)
    grid = F.affine_grid(warps, [count, *images.shape[1:]], align_corners=False)
    seen = F.grid_sample(images[:count], grid, mode="bicubic", padding_mode="reflection", align_corners=False)
    gains = torch.from_numpy(np.exp(random.normal(0.0, VAL_CAMERA.gain_sd, (count, 1, 1, 1)))).to(seen)
    noise = torch.from_numpy(random.normal(0.0, VAL_CAMERA.noise_levels, seen.shape)).to(seen)
    views = (seen * gains + noise).round().clamp(0.0, 255.0)
    return torch.cat([images, views]), WithViews(targets, warps)


def consistency_loss(logits: Tensor, warps: Tensor, known: Tensor) -> Tensor:
    """Returns the squared difference between the probabilities of views and of their warped pictures.

    It is summed over the classes and averaged over the pixels. `logits`: (B + P, K, h, w), the views last. `known`: (B,
    h, w), False where a picture is void or padding. Pixels that a view shows and its picture does not are left out; 0
    where nothing is left.
    """
    count = len(warps)
    probs = torch.softmax(logits, 1)
    pictures, views = probs[:count], probs[-count:]
    grid = F.affine_grid(warps.to(probs), list(pictures.shape), align_corners=False)
    warped = F.grid_sample(pictures, grid, mode="bilinear", padding_mode="border", align_corners=False)
    shown = F.grid_sample(
        known[:count, None].to(probs), grid, mode="nearest", padding_mode="zeros", align_corners=False
    )[:, 0]
    difference = (warped - views).square().sum(1)
    return (difference * shown).sum() / shown.sum().clamp(min=1.0)


def _warp(random: np.random.Generator, height: int, width: int) -> Tensor:
    """Returns the (2, 3) float32 warp of 1 to MAX_GAP steps of the camera, in the coordinates of `affine_grid`."""
    centre = np.array([(width - 1) / 2, (height - 1) / 2])
    to_picture = np.eye(3)
    for step in camera_steps(random, int(random.integers(1, MAX_GAP + 1)), VAL_CAMERA, width / REFERENCE_WIDTH):
        to_picture = to_picture @ similarity(*step, centre)
    to_pixels = np.array([[width / 2, 0, (width - 1) / 2], [0, height / 2, (height - 1) / 2], [0, 0, 1]])
    return torch.from_numpy(np.linalg.inv(to_pixels) @ to_picture @ to_pixels)[:2].float()
