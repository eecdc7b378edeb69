"""An observer head after ObsNet (Besnier et al., ICCV 2021, arXiv 2108.01634): it learns where a frozen network errs.

A network is right on nearly all of the pictures that it was trained on, so there are few errors to learn from. A step
against the label inside a random ellipse makes more of them (a local adversarial attack).
"""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steadyseg.core.classes import CAMVID
from steadyseg.core.dropout import set_dropout_active
from steadyseg.core.model.model import Model
from steadyseg.core.preprocess import Normalize, enlarge, nearest, network_size, resize
from steadyseg.core.stages import StageFeatures
from steadyseg.seg.novelty.fit import default_stages
from steadyseg.studies.novelty.samples import drawing

STEPS, BATCH, RATE = 500, 2, 2e-3
CHANNELS = 48
COARSE = 8
"""Rows, and columns, of the network's input for each prediction of the head."""
STRENGTHS = (0.02, 0.1)
"""Smallest and largest change of a pixel by the attack, where black is 0 and white is 1; ObsNet's is 0.02."""

Labelled = tuple[np.ndarray, np.ndarray]
"""A picture (H, W, 3) uint8 and its label (H, W) uint8."""


class Head(nn.Module):
    """Computes the logit of an error at every `COARSE`-th row and column, (B, 1, h, w), from maps of the network."""

    def __init__(self, channels: Sequence[int]) -> None:
        super().__init__()
        self.inputs = nn.ModuleList(nn.Sequential(nn.BatchNorm2d(one), nn.Conv2d(one, CHANNELS, 1)) for one in channels)
        self.body = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(CHANNELS, CHANNELS, 3, padding=2, dilation=2),
            nn.ReLU(),
            nn.Conv2d(CHANNELS, 1, 1),
        )

    def forward(self, maps: Sequence[Tensor], size: tuple[int, int]) -> Tensor:
        cells = -(-size[0] // COARSE), -(-size[1] // COARSE)
        parts = [at_cells(enter(one), cells) for enter, one in zip(self.inputs, maps, strict=True)]
        logits: Tensor = self.body(torch.stack(parts).sum(0))
        return logits


class Observer:
    """A frozen network, and a head that is trained to find its errors."""

    def __init__(self, model: Model) -> None:
        self.network, self.meta = model.network().eval().requires_grad_(False), model.meta
        set_dropout_active(self.network, False)  # else each look draws masks: the AP moves by 0.01 from run to run
        self.taps = StageFeatures(self.network, default_stages(self.network))
        self.normalize = Normalize(self.meta.mean, self.meta.std)

    def maps(self, inputs: Tensor, size: tuple[int, int]) -> tuple[Tensor, list[Tensor]]:
        """Logits at the input's size, and the maps that the head sees."""
        logits = self.network(inputs)
        return enlarge(logits, size), [*self.taps.take(), logits]

    def train(self, pictures: Sequence[Labelled], seed: int) -> None:
        """Trains the head on attacked pictures, a new attack at every step."""
        torch.manual_seed(seed)
        draw = drawing("observer", seed)
        height, width = pictures[0][1].shape
        size = network_size(height, width, self.meta.height)
        inputs = self.normalize(pixels_of(pictures[0][0], size))
        self.head = Head([one.shape[1] for one in self.maps(inputs, size)[1]]).train()
        optimizer = torch.optim.AdamW(self.head.parameters())
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=STEPS)
        for _ in range(STEPS):
            chosen = [pictures[place] for place in draw.choice(len(pictures), BATCH, replace=False)]
            pixels = torch.cat([pixels_of(image, size) for image, _ in chosen])
            labels = nearest(torch.from_numpy(np.stack([label for _, label in chosen])), size).long()
            logits, maps = self.maps(self.normalize(self.attack(pixels, labels, draw)), size)
            loss = error_loss(self.head([one.detach() for one in maps], size), logits.argmax(1) != labels, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        self.head.eval()

    def attack(self, pixels: Tensor, labels: Tensor, draw: np.random.Generator) -> Tensor:
        """Moves the pixels (B, 3, h, w) of one ellipse a picture a step up the loss (FGSM, arXiv 1412.6572)."""
        moved = pixels.float().requires_grad_()
        logits, _ = self.maps(self.normalize(moved), (labels.shape[1], labels.shape[2]))
        (slope,) = torch.autograd.grad(F.cross_entropy(logits, labels, ignore_index=CAMVID.void_id), moved)
        inside = torch.stack([ellipse(labels.shape[1], labels.shape[2], draw) for _ in labels])[:, None]
        strength = torch.from_numpy(draw.uniform(*STRENGTHS, (len(labels), 1, 1, 1))).float()
        return (pixels + 255 * strength * inside * slope.sign()).clamp(0, 255)

    @torch.inference_mode()
    def __call__(self, image: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        """(H, W, 3) uint8 -> logits (1, K, h, w), features of the last stage (1, C, h, w) and logits of an error
        (1, 1, h, w), all at the size of the network's input."""
        size = network_size(image.shape[0], image.shape[1], self.meta.height)
        logits, maps = self.maps(self.normalize(pixels_of(image, size)), size)
        return logits, enlarge(maps[-2], size), enlarge(self.head(maps, size), size)


def at_cells(maps: Tensor, cells: tuple[int, int]) -> Tensor:
    """Resizes maps (B, C, h, w) to the head's grid: averages of finer ones, coarser ones bilinearly."""
    if maps.shape[-1] >= cells[1]:
        return F.adaptive_avg_pool2d(maps, cells)
    return F.interpolate(maps, cells, mode="bilinear", align_corners=False)


def pixels_of(image: np.ndarray, size: tuple[int, int]) -> Tensor:
    return resize(torch.from_numpy(image).permute(2, 0, 1)[None], size)


def ellipse(height: int, width: int, draw: np.random.Generator) -> Tensor:
    """(height, width) of 1 inside an ellipse of a twelfth to a half of the width, else 0."""
    import cv2

    inside = np.zeros((height, width), np.float32)
    centre = int(draw.integers(width)), int(draw.integers(height))
    axes = [max(2, round(width * share / 2)) for share in draw.uniform(1 / 12, 1 / 2, 2)]
    cv2.ellipse(inside, centre, axes, float(draw.uniform(0, 180)), 0, 360, 1.0, -1)
    return torch.from_numpy(inside)


def error_loss(logits: Tensor, wrong: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the share of wrong pixels in each cell; wrong and right pixels weigh equally in the sum."""
    known = (labels != CAMVID.void_id).float()
    share, kept = (at_cells(one[:, None], (logits.shape[2], logits.shape[3])) for one in (wrong * known, known))
    right = kept - share
    balance = right.sum() / share.sum().clamp_min(1.0)
    each = balance * share * F.softplus(-logits) + right * F.softplus(logits)
    return each.sum() / (2 * right.sum().clamp_min(1.0))
