"""The temperature of a novel frame, on logits whose true temperatures are known."""

import pytest
import torch
from refusals import refusal

from steadyseg.core.familiarity.frame_temperature import fit_warmth, warmth

USUAL, SLOPE, LEVEL = 0.2, 0.5, 0.4


def made(frames: int, pixels: int = 4000) -> tuple[torch.Tensor, list[torch.Tensor], list[torch.Tensor]]:
    """Labels drawn from softmax(logits / T). In the first half log T is 0.2; in the second half it is 0.2 + 0.4 + 0.5
    x, at least 0.2. A second statistic has no effect."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(frames, 2, generator=generator)
    logits, labels = [], []
    for number, row in enumerate(x):
        calm = 2 * torch.randn(pixels, 4, generator=generator)
        labels.append(torch.multinomial(torch.softmax(calm, 1), 1, generator=generator)[:, 0])
        warm = 0.0 if number < frames // 2 else max(0.0, LEVEL + SLOPE * float(row[0]))
        logits.append(calm * torch.exp(torch.tensor(USUAL + warm)))
    return x, logits, labels


def test_slopes_and_level_of_novel_frames_are_found() -> None:
    excess = torch.tensor([0.0] * 24 + [1.0] * 24)
    fit = fit_warmth(made(48)[0], excess, *made(48)[1:], [True] * 24 + [False] * 24)
    found = torch.tensor([*fit.slopes, fit.level])
    torch.testing.assert_close(found, torch.tensor([SLOPE, 0.0, LEVEL]), atol=0.08, rtol=0)  # the ridge takes 0.06
    assert fit.nll < fit.nll_one - 0.01


@pytest.mark.parametrize(("excess", "deviation", "wanted"), [(-3.0, 4.0, 0.0), (0.5, 1.0, 0.75), (9.0, 1.0, 1.5)])
def test_warmth_grows_with_excess(excess: float, deviation: float, wanted: float) -> None:
    found = warmth(torch.tensor([[deviation]]), torch.tensor([excess]), torch.tensor([1.0]), 0.5)
    assert float(found) == wanted


def test_no_novel_frame_is_cooler_and_none_is_uniform() -> None:
    found = warmth(torch.tensor([[-9.0], [1e4]]), torch.ones(2), torch.tensor([1.0]), 0.0)
    assert found.tolist() == [0.0, 2.5]


def test_what_cannot_be_fitted() -> None:
    x, logits, labels = made(2, 5)
    for given in ((logits[:1], labels[:1], [True]), (logits, [labels[0], labels[1][:0]], [True, False])):
        assert "labelled pixels" in refusal(fit_warmth, x, torch.ones(2), *given)
    assert "one of them unchanged" in refusal(fit_warmth, x, torch.ones(2), logits, labels, [False, False])
