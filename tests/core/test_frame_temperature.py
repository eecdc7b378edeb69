"""The temperature of a frame, on logits whose true temperatures are known."""

import torch
from refusals import refusal

from core.novelty.frame_temperature import fit_frame_temperature

SLOPE, LEVEL = 0.5, 0.2


def made(frames: int, pixels: int = 4000) -> tuple[torch.Tensor, list[torch.Tensor], list[torch.Tensor]]:
    """Labels drawn from softmax(logits / T) with log T = 0.2 + 0.5 x; a second statistic says nothing."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(frames, 2, generator=generator)
    logits, labels = [], []
    for row in x:
        calm = 2 * torch.randn(pixels, 4, generator=generator)
        labels.append(torch.multinomial(torch.softmax(calm, 1), 1, generator=generator)[:, 0])
        logits.append(calm * torch.exp(LEVEL + SLOPE * row[0]))
    return x, logits, labels


def test_slopes_and_level_are_found_and_gain_over_one_temperature() -> None:
    fit = fit_frame_temperature(*made(24), torch.ones(24))
    found = torch.tensor([*fit.slopes, fit.level])
    torch.testing.assert_close(found, torch.tensor([SLOPE, 0.0, LEVEL]), atol=0.05, rtol=0)
    assert fit.nll < fit.nll_one - 0.01


def test_a_frame_without_weight_does_not_count() -> None:
    x, logits, labels = made(12)
    wrong = [*labels[:-1], (labels[-1] + 1) % 4]
    weights = torch.ones(12)
    weights[-1] = 0.0
    with_it = fit_frame_temperature(x, logits, wrong, weights)
    without = fit_frame_temperature(x[:-1], logits[:-1], labels[:-1], weights[:-1])
    assert abs(with_it.level - without.level) < 1e-3


def test_too_few_frames_and_unlabelled_ones_are_refused() -> None:
    x, logits, labels = made(2, 5)
    assert "two or more frames" in refusal(fit_frame_temperature, x[:1], logits[:1], labels[:1], torch.ones(1))
    assert "labelled pixels" in refusal(fit_frame_temperature, x, logits, [labels[0], labels[1][:0]], torch.ones(2))
