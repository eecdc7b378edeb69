"""The temperature scan against data of a known temperature and a float64 computation in NumPy."""

import numpy as np
import pytest
import torch
from refusals import refusal
from torch import Tensor

from steadyseg.core.evaluation.temperature import GRID, MIN_PIXELS, TemperatureFit, TemperatureScan, grid_tensor
from steadyseg.core.prediction import Prediction

CLASSES = 5
VOID = 255
CPU = torch.device("cpu")


def logits_of(seed: int, height: int = 80, width: int = 100) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 4 * torch.randn(1, CLASSES, height, width, generator=generator)


def drawn_labels(probs: Tensor, seed: int) -> Tensor:
    """(h, w) one label a pixel from (1, K, h, w) probabilities."""
    pixels = probs[0].flatten(1).T
    ids = torch.multinomial(pixels, 1, generator=torch.Generator().manual_seed(seed))
    return ids.view(probs.shape[-2:]).to(torch.uint8)


def tempered(logits: Tensor) -> Tensor:
    return Prediction.from_logits(logits, grid_tensor(CPU)).probs


def fit(frames: list[tuple[Tensor, Tensor]]) -> TemperatureFit:
    scan = TemperatureScan(CLASSES, VOID)
    for probs, labels in frames:
        scan.update(probs, labels)
    return scan.fit()


def sampled_at(temperature: float, frames: int) -> list[tuple[Tensor, Tensor]]:
    """(logits, labels) whose labels follow softmax(logits / temperature)."""
    logits = [logits_of(seed) for seed in range(frames)]
    return [(one, drawn_labels(torch.softmax(one / temperature, 1), 100 + i)) for i, one in enumerate(logits)]


def slow_nll(logits: Tensor, labels: Tensor, temperature: float) -> float:
    """Mean over non-void pixels: float64, log-sum-exp, no softmax."""
    z = logits[0].double().numpy().reshape(CLASSES, -1) / temperature
    truth = labels.numpy().reshape(-1)
    z, truth = z[:, truth != VOID], truth[truth != VOID].astype(int)
    top = z.max(0)
    return float((top + np.log(np.exp(z - top).sum(0)) - z[truth, np.arange(len(truth))]).mean())


def slow_ece(probs: np.ndarray, truth: np.ndarray) -> float:
    confidence, right = probs.max(0), probs.argmax(0) == truth
    gaps = 0.0
    for i in range(10):
        inside = (confidence > i / 10) & (confidence <= (i + 1) / 10)
        gaps += abs(right[inside].sum() - confidence[inside].sum())
    return float(gaps / len(truth))


def test_the_grid_as_a_batch_is_every_temperature_alone() -> None:
    logits = logits_of(0, 6, 7)
    for row, temperature in zip(tempered(logits), GRID, strict=True):
        torch.testing.assert_close(row, torch.softmax(logits[0].double() / temperature, 0).float())
    assert 1.0 in GRID and GRID[0] < 0.5 and GRID[-1] > 3.5


@pytest.mark.parametrize("temperature", [0.7, 1.0, 2.0])
def test_the_temperature_that_the_labels_were_drawn_at_is_found(temperature: float) -> None:
    found = fit([(tempered(logits), labels) for logits, labels in sampled_at(temperature, 6)])
    assert found.temperature == pytest.approx(temperature, rel=0.02) and found.pixels == 6 * 80 * 100


def test_figures_equal_a_float64_computation() -> None:
    pairs = sampled_at(2.0, 2)
    found = fit([(tempered(logits), labels) for logits, labels in pairs])
    before, after = (
        np.mean([slow_nll(logits, labels, t) for logits, labels in pairs]) for t in (1.0, found.temperature)
    )
    assert found.nll == pytest.approx(before, rel=1e-6)
    assert after < min(np.mean([slow_nll(logits, labels, t) for logits, labels in pairs]) for t in GRID)
    probs = torch.cat([torch.softmax(logits[0], 0).flatten(1) for logits, _ in pairs], 1).numpy()
    truth = torch.cat([labels.flatten() for _, labels in pairs]).numpy()
    assert found.ece == pytest.approx(slow_ece(probs, truth), rel=1e-5) and found.ece > 0.05


def test_void_pixels_do_not_count() -> None:
    (logits, labels), (noise, _) = sampled_at(1.5, 2)
    void = torch.rand(labels.shape, generator=torch.Generator().manual_seed(1)) < 0.3
    with_void, spoiled = labels.masked_fill(void, VOID), torch.where(void, 9 * noise, logits)
    found, expected = (fit([(tempered(one), with_void)]) for one in (spoiled, logits))
    assert found == expected and found.pixels == int((~void).sum())
    assert found.nll == pytest.approx(slow_nll(logits, with_void, 1.0), rel=1e-6)
    assert fit([(tempered(noise), torch.full_like(labels, VOID)), (tempered(logits), with_void)]) == expected


def test_flips_of_a_mean_of_two_tempered_softmaxes_are_counted() -> None:
    """A member that is sure outvotes one that wavers; tempered, it need not."""
    first, second = logits_of(1), 0.4 * logits_of(2)
    probs = (tempered(first) + tempered(second)) / 2
    labels = drawn_labels((torch.softmax(first / 2, 1) + torch.softmax(second / 2, 1)) / 2, 3)
    labels[:20] = VOID
    found = fit([(probs, labels)])
    nearest = int(np.abs(np.log(GRID) - np.log(found.temperature)).argmin())
    now, before = (
        sum(torch.softmax(one.double() / t, 1) for one in (first, second)).argmax(1)[0].numpy()
        for t in (GRID[nearest], 1.0)
    )
    kept = labels.numpy() != VOID
    assert found.flips == (now != before)[kept].mean() > 0.01


def test_fewer_than_a_hundred_pixels_are_refused() -> None:
    logits, labels = sampled_at(1.0, 1)[0]
    few = torch.full_like(labels, VOID).flatten()
    few[: MIN_PIXELS - 1] = labels.flatten()[: MIN_PIXELS - 1]
    scan = TemperatureScan(CLASSES, VOID)
    assert "0 labelled pixels" in refusal(scan.fit)
    scan.update(tempered(logits), few.view_as(labels))
    assert "99 labelled pixels" in refusal(scan.fit) and "100 or more" in refusal(scan.fit)
    few[MIN_PIXELS - 1] = labels.flatten()[MIN_PIXELS - 1]
    assert fit([(tempered(logits), few.view_as(labels))]).pixels == 100


@pytest.mark.parametrize("kind", ["always right", "by chance"])
def test_a_best_temperature_at_the_grid_s_edge_is_refused(kind: str) -> None:
    """All right: the colder the better; labels of other images: the warmer the better."""
    logits = logits_of(0)
    labels = logits.argmax(1)[0] if kind == "always right" else drawn_labels(torch.full_like(logits, 0.2), 5)
    scan = TemperatureScan(CLASSES, VOID)
    scan.update(tempered(logits), labels)
    line, chance = refusal(scan.fit), kind == "by chance"
    assert (f"above {GRID[-1]:.2f}" if chance else f"below {GRID[0]:.2f} at an accuracy of 100.0%") in line
    assert ("equal probabilities" if chance else "less sure than it is right") in line
