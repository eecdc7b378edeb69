"""Gradient attacks within a max-norm budget: FGSM and PGD, untargeted, through the mean over dropout passes.

Pictures are pixels in 0..1 and so are budgets: 2 / 255 is two of the 256 levels, in every channel and for every
network. The published code attacks the normalised input instead and never clamps: there a budget is 1 / std of the
channel times as much.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.preprocess import Normalize, enlarge

EPS = 2 / 255
"""Not seen by eye, and a network that was not trained against attacks is left some right answers, so that methods
differ."""
PGD_STEPS = 20
PGD_STEP_SHARE = 0.25
"""Step as a share of the budget: twenty quarter steps can cross it twice, from any start."""


class OnPixels(nn.Module):
    """The network with pixels (B, 3, h, w) in 0..1 as its input: network(normalize(255 x)) / temperature.

    Logits of pixels come at the picture's size, enlarged as in training where the network's head works at a coarser
    one.
    """

    def __init__(self, network: nn.Module, normalize: Normalize, temperature: float = 1.0) -> None:
        super().__init__()
        self.network, self.normalize, self.temperature = network, normalize, temperature

    def forward(self, pixels: Tensor) -> Tensor:
        logits: Tensor = self.network(self.normalize(255.0 * pixels)) / self.temperature
        return enlarge(logits, pixels.shape[-2:]) if logits.ndim == 4 else logits


def fgsm(
    network: nn.Module,
    images: Tensor,
    labels: Tensor,
    *,
    eps: float = EPS,
    samples: int = 1,
    void: int | None = None,
    seed: int = 0,
) -> Tensor:
    """images + eps * sign of the loss's gradient, clamped to 0..1 (Goodfellow et al. 2015, arXiv 1412.6572).

    network: pixels (B, 3, h, w) in 0..1 -> logits (B, K, ...), see `OnPixels`; labels (B, ...) class ids or void. The
    loss is the NLL of the mean softmax of `samples` passes, whose graphs are all held at once; void pixels have none.
    Depends on the arguments alone: dropout masks come from the seed. Raises CheckFailed for a gradient of NaN.
    """
    with _seed_torch(seed, images.device), torch.inference_mode(False), torch.enable_grad():
        # Of what inference mode made, autograd takes a copy only.
        clean, labels = images.detach().clone(), labels.clone()
        return (clean + eps * _gradient(network, clean, labels, samples, void).sign()).clamp(0.0, 1.0)


def pgd(
    network: nn.Module,
    images: Tensor,
    labels: Tensor,
    *,
    eps: float = EPS,
    step: float | None = None,
    steps: int = PGD_STEPS,
    samples: int = 1,
    void: int | None = None,
    seed: int = 0,
) -> Tensor:
    """Steps of FGSM from a random start, each projected to the budget and to 0..1 (Madry et al. 2018, arXiv
    1706.06083).

    The start is uniform in the budget and drawn from the seed, as is every pass's dropout mask. `step` is eps / 4
    without it. The rest is as in `fgsm`.
    """
    step = PGD_STEP_SHARE * eps if step is None else step
    with _seed_torch(seed, images.device), torch.inference_mode(False), torch.enable_grad():
        clean, labels = images.detach().clone(), labels.clone()
        low, high = (clean - eps).clamp_min(0.0), (clean + eps).clamp_max(1.0)
        start = torch.rand(clean.shape, dtype=clean.dtype).to(clean.device)  # from the CPU: the same on every device
        attacked = torch.clamp(clean + eps * (2.0 * start - 1.0), low, high)
        for _ in range(steps):
            ascent = step * _gradient(network, attacked, labels, samples, void).sign()
            attacked = torch.clamp(attacked + ascent, low, high)
        return attacked


class AttackSuccess:
    """Counts how often an attack turns a right answer into a wrong one; void labels never count."""

    def __init__(self, void: int | None = None) -> None:
        self.void = void
        self._counts = torch.zeros(4, dtype=torch.int64)  # samples, right when clean, right when attacked, in both

    def update(self, clean: Tensor, attacked: Tensor, labels: Tensor) -> None:
        """Adds predicted class ids (B, ...) of the clean and of the attacked pictures, and the true ones."""
        counted = torch.ones_like(labels, dtype=torch.bool) if self.void is None else labels != self.void
        before, after = (clean == labels) & counted, (attacked == labels) & counted
        self._counts += torch.stack([x.sum() for x in (counted, before, after, before & after)]).cpu()

    def result(self) -> dict[str, float | int | None]:
        """`attack_success_rate` = P(wrong when attacked | right when clean), None if nothing was right; the
        accuracies."""
        samples, before, after, both = self._counts.tolist()
        if not samples:
            raise InputError("an attack's success needs at least one non-void sample, got none")
        return {
            "samples": samples,
            "clean_accuracy": before / samples,
            "attacked_accuracy": after / samples,
            "attack_success_rate": 1.0 - both / before if before else None,
        }


def _gradient(network: nn.Module, images: Tensor, labels: Tensor, samples: int, void: int | None) -> Tensor:
    """(B, 3, h, w): of the summed NLL of the mean probabilities; a picture's gradient does not depend on its batch."""
    images = images.detach().requires_grad_(True)
    log_probs = mean_of_passes(network, images, samples)
    ignored = -100 if void is None else void
    loss = F.nll_loss(log_probs, labels.long(), ignore_index=ignored, reduction="sum")
    gradient = torch.autograd.grad(loss, images)[0]
    if not bool(gradient.isfinite().all()):
        raise CheckFailed("the attack's gradient is not finite: the network's output is not either, or overflows")
    return gradient


def mean_of_passes(network: nn.Module, images: Tensor, samples: int) -> Tensor:
    """The log of the mean softmax of so many dropout passes of a batch, (B, K, ...)."""
    passes = [torch.log_softmax(network(images), 1) for _ in range(samples)]
    return torch.logsumexp(torch.stack(passes), 0) - math.log(samples)


@contextmanager
def _seed_torch(seed: int, device: torch.device) -> Iterator[None]:
    """torch's generators are at `seed` inside and where they were afterwards."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
