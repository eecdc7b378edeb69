"""Depth from one camera on the street, whose renderer knows it: a U-Net with two outputs, and its mean over time.

The network predicts mean and variance of log depth, and is trained by the Gaussian negative log-likelihood. The first
two moments of a mixture of passes average linearly, so the product's rule averages them over time as it averages
probabilities; they give the mixture's mean and variance.
"""

import math
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import torch
from torch import Tensor, nn

from steadyseg.app.video.render import draw_uncertainty
from steadyseg.core.dropout import set_dropout_active
from steadyseg.core.method import PUBLISHED_TAU
from steadyseg.core.prediction import Prediction
from steadyseg.core.predictors import forward_passes
from steadyseg.core.preprocess import Normalize
from steadyseg.core.temporal import TemporalSmoothing
from steadyseg.seg.networks.unet import UNet
from steadyseg.seg.options import UNetOptions
from steadyseg.seg.street.drive import Street

HEIGHT, WIDTH = 64, 96
FAR = 80.0
"""Metres; farther pixels, and the sky, do not count (published: below the maximum of the image)."""
STREETS, LOOKS = 40, 4
"""Pictures of the training: so many looks of so many streets."""
STEPS, BATCH, RATE = 600, 4, 2e-3
TEST_SEEDS, TEST_FRAMES = (9001, 9002), 40
PASSES = 8
OPTIONS = UNetOptions(channels=8, dropout=0.2)
CONSTANT = Normalize((0.45, 0.45, 0.45), (0.25, 0.25, 0.25))
METHODS = {"dnn": (0, False), "bnn": (PASSES, False), "vq-dnn": (0, True), "vq-bnn": (1, True)}
"""Dropout passes (0: one without dropout), and whether the mean over time is taken."""
LIMITS = (-6.0, 4.0)
"""Of the log variance: a deviation of 0.05 to 7.4 in log depth."""


class Moments(NamedTuple):
    """Mean and variance of log depth, (B, h, w)."""

    mean: Tensor
    variance: Tensor

    @classmethod
    def of_output(cls, output: Tensor) -> "Moments":
        """The network's two channels: mean, and log variance within `LIMITS`."""
        return cls(output[:, 0] + math.log(15.0), output[:, 1].clamp(*LIMITS).exp())

    @property
    def as_mixture(self) -> Prediction:
        """The first two moments as planes that average linearly."""
        planes = torch.stack([self.mean, self.variance + self.mean**2], 1)
        return Prediction(planes, torch.zeros_like(self.mean))

    @classmethod
    def of_mixture(cls, mixture: Prediction) -> "Moments":
        mean, second = mixture.probs.unbind(1)
        return cls(mean, (second - mean**2).clamp_min(math.exp(LIMITS[0])))


def nll(found: Moments, metres: Tensor) -> Tensor:
    """Mean Gaussian negative log-likelihood of log depth in nats, over the pixels nearer than `FAR`."""
    near = metres < FAR
    error = (metres[near].log() - found.mean[near]) ** 2
    variance = found.variance[near]
    return 0.5 * (math.log(2 * math.pi) + variance.log() + error / variance).mean()


def pictures(seeds: range, looks: int) -> tuple[Tensor, Tensor]:
    """(N, 3, h, w) uint8 pictures of streets, and their depth (N, h, w) in metres."""
    images, depths = [], []
    for seed in seeds:
        street = Street(seed=seed, height=HEIGHT, width=WIDTH)
        for look in range(looks):
            images.append(street.frame(60 * look + 1).image)
            depths.append(street.depth(60 * look + 1))
    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2), torch.from_numpy(np.stack(depths))


def train(images: Tensor, metres: Tensor, steps: int = STEPS) -> nn.Module:
    """Trains by AdamW and a one-cycle rate on flipped pictures."""
    torch.manual_seed(0)
    network = UNet(2, OPTIONS).train()
    optimizer = torch.optim.AdamW(network.parameters(), RATE, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, steps)
    for _ in range(steps):
        chosen = torch.randint(len(images), (BATCH,))
        flip = [3] if torch.rand(()) < 0.5 else []
        batch, target = images[chosen].float().flip(flip), metres[chosen].flip([axis - 1 for axis in flip])
        optimizer.zero_grad()
        nll(Moments.of_output(network(CONSTANT(batch))), target).backward()
        optimizer.step()
        schedule.step()
    return network.eval()


@torch.inference_mode()
def predict(network: nn.Module, image: np.ndarray, passes: int) -> Moments:
    """One pass without dropout (passes 0), or the mixture of so many with it."""
    set_dropout_active(network, passes > 0)
    batch = CONSTANT(torch.from_numpy(image).permute(2, 0, 1)[None].float())
    found = [Moments.of_output(one).as_mixture for one in forward_passes(network, batch, max(passes, 1))]
    mixture = found[0]
    for count, one in enumerate(found[1:], start=2):
        mixture = mixture.blend(one, 1 / count)
    return Moments.of_mixture(mixture)


def figures(found: list[Moments], truth: list[Tensor]) -> dict[str, float]:
    """Returns the NLL of the logarithm of the depth, the RMSE in metres, and the shares of pixels whose depth is
    wrong by a factor of at most 1.25, 1.25^2 and 1.25^3."""
    near = torch.cat([metres[metres < FAR] for metres in truth])
    said = torch.cat([one.mean[0][metres < FAR] for one, metres in zip(found, truth, strict=True)]).exp()
    factor = torch.maximum(said / near, near / said)
    losses = [nll(one, metres[None]).item() for one, metres in zip(found, truth, strict=True)]
    within = {f"delta_{power}": (factor < 1.25**power).double().mean().item() for power in (1, 2, 3)}
    return {"nll": float(np.mean(losses)), "rmse_m": ((said - near) ** 2).mean().sqrt().item(), **within}


def measure_depth(picture: Path) -> dict[str, Any]:
    """Trains, measures every method on two streets as streams, and writes the picture of one frame."""
    network = train(*pictures(range(5000, 5000 + STREETS), LOOKS))
    found: dict[str, list[Moments]] = {name: [] for name in METHODS}
    truth: list[Tensor] = []
    for seed in TEST_SEEDS:
        street = Street(seed=seed, height=HEIGHT, width=WIDTH)
        states: dict[str, Any] = dict.fromkeys(METHODS)
        for number in range(TEST_FRAMES):
            image = street.frame(number).image
            truth.append(torch.from_numpy(street.depth(number)))
            for name, (passes, smooths) in METHODS.items():
                now = predict(network, image, passes)
                if smooths:
                    mixture, states[name] = TemporalSmoothing(PUBLISHED_TAU)(now.as_mixture, states[name])
                    now = Moments.of_mixture(mixture)
                found[name].append(now)
    draw(picture, street.frame(TEST_FRAMES - 1).image, truth[-1], found["vq-bnn"][-1])
    return {name: figures(moments, truth) for name, moments in found.items()}


def draw(path: Path, image: np.ndarray, metres: Tensor, found: Moments) -> None:
    """Writes the frame, its depth, the predicted depth and the predicted deviation, side by side."""

    def shades(values: Tensor, most: float) -> np.ndarray:
        return draw_uncertainty((values.clamp(0, most) * (255 / most)).numpy().astype(np.uint8))

    logs = math.log(FAR)
    near = torch.where(metres < FAR, metres, torch.tensor(FAR)).log()
    said, deviation = shades(logs - found.mean[0], logs), shades(found.variance[0].sqrt(), 1.0)
    panels = [image, shades(logs - near, logs), said, deviation]
    grown = [cv2.resize(panel, None, fx=3, fy=3, interpolation=cv2.INTER_NEAREST) for panel in panels]
    cv2.imwrite(str(path), np.concatenate(grown, axis=1)[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 85])
