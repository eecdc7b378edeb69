"""FGSM and PGD against closed forms of linear networks, their budget, void pixels, dropout and repeatability."""

import pytest
import torch
from torch import Tensor, nn

from steadyseg.core.dropout import Dropout
from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.preprocess import Normalize
from steadyseg.studies.robustness.measures.attacks import EPS, AttackSuccess, OnPixels, fgsm, pgd

SHAPE = (3, 4, 5)


class Linear(nn.Module):
    """A linear classifier of pixels: logits = W x."""

    def __init__(self, classes: int = 2, seed: int = 0, scale: float = 1.0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.weight = nn.Parameter(scale * torch.randn(classes, 60, generator=generator))

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1) @ self.weight.T


class Turns(nn.Module):
    """Several networks in turn, which act as dropout passes with known masks."""

    def __init__(self, members: list[nn.Module]) -> None:
        super().__init__()
        self.members, self.calls = nn.ModuleList(members), 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.members[(self.calls - 1) % len(self.members)](x)


def pictures(count: int = 6, seed: int = 1, margin: float = 0.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return margin + (1 - 2 * margin) * torch.rand(count, *SHAPE, generator=generator)


def labels_of(count: int = 6, classes: int = 2) -> Tensor:
    return torch.arange(count) % classes


def towards_the_other(network: Linear, labels: Tensor) -> Tensor:
    """Sign of the gradient of a two-class linear network's NLL: the sign of w_other - w_true for every picture."""
    w = network.weight.detach()
    return (w[1 - labels] - w[labels]).sign().view(-1, *SHAPE)


def test_fgsm_of_a_linear_network_is_its_closed_form() -> None:
    network, images, labels = Linear(), pictures(), labels_of()
    expected = (images + 0.03 * towards_the_other(network, labels)).clamp(0, 1)
    torch.testing.assert_close(fgsm(network, images, labels, eps=0.03), expected, rtol=0, atol=1e-7)


def test_pgd_of_a_linear_network_ends_in_the_corner_that_fgsm_finds() -> None:
    """Its gradient has one sign everywhere, so every path ends there."""
    network, images, labels = Linear(), pictures(), labels_of()
    corner = fgsm(network, images, labels, eps=0.03)
    torch.testing.assert_close(pgd(network, images, labels, eps=0.03), corner, rtol=0, atol=1e-6)
    short = pgd(network, images, labels, eps=0.03, step=0.001, steps=3)
    assert (short - corner).abs().max() > 0.01


def test_one_step_of_pgd_starts_within_the_budget_and_goes_uphill() -> None:
    network, images, labels = Linear(), pictures(margin=0.2), labels_of()
    moved = pgd(network, images, labels, eps=0.1, step=1e-6, steps=1) - images
    assert moved.abs().max() <= 0.1 + 1e-6
    assert moved.mean().abs() < 0.01 and moved.std() == pytest.approx(0.1 / 3**0.5, rel=0.1)  # uniform
    ascent = pgd(network, images, labels, eps=0.1, step=0.01, steps=1) - images - moved
    inside = (images + moved - images).abs() < 0.09
    sign = towards_the_other(network, labels)
    torch.testing.assert_close(ascent[inside], 0.01 * sign[inside], rtol=0, atol=1e-5)


@pytest.mark.parametrize("eps", [EPS, 0.1, 1.0])
def test_no_attack_leaves_its_budget_or_the_range_of_pixels(eps: float) -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(80, 5))
    images, labels = pictures(8), labels_of(8, 5)
    images[0], images[1] = 0.0, 1.0
    for attacked in (fgsm(network, images, labels, eps=eps), pgd(network, images, labels, eps=eps, steps=3)):
        assert (attacked - images).abs().max() <= eps + 1e-6 and attacked.shape == images.shape
        assert attacked.min() >= 0 and attacked.max() <= 1 and not attacked.requires_grad
        assert (attacked != images).float().mean() > 0.4
    assert all(parameter.grad is None for parameter in network.parameters())


def test_the_gradient_is_that_of_the_mean_of_the_passes() -> None:
    """d/dx of -log mean p by finite differences, in a case where the mean log p has other signs."""
    members = [Linear(3, seed, scale=2.0).double() for seed in range(4)]
    images, labels = pictures(3, margin=0.2).double(), labels_of(3, 3)

    def losses(x: Tensor) -> tuple[Tensor, Tensor]:
        p = torch.stack([member(x).softmax(1).gather(1, labels[:, None])[:, 0] for member in members])
        return -p.mean(0).log(), -p.log().mean(0)

    signs = torch.zeros(2, *images.shape, dtype=torch.float64)
    with torch.no_grad():
        for place in range(60):
            step = torch.zeros(60, dtype=torch.float64)
            step[place] = 1e-5
            up, down = losses(images + step.view(SHAPE)), losses(images - step.view(SHAPE))
            for kind in (0, 1):
                signs[kind].view(3, 60)[:, place] = (up[kind] - down[kind]).sign()
    attacked = fgsm(Turns(members), images, labels, eps=0.01, samples=4)
    assert ((attacked - images).sign() == signs[0]).all()
    assert (signs[0] != signs[1]).float().mean() > 0.03


def test_each_pass_draws_its_mask_and_the_seed_decides() -> None:
    network = nn.Sequential(Dropout(0.5), Linear(3)).eval()
    images, labels = pictures(margin=0.1), labels_of(6, 3)
    torch.manual_seed(123)
    before = torch.get_rng_state()
    for attack in (fgsm, pgd):
        first = attack(network, images, labels, samples=2, seed=4)
        assert (torch.get_rng_state() == before).all()
        torch.rand(7)
        assert (attack(network, images, labels, samples=2, seed=4) == first).all()
        assert (attack(network, images, labels, samples=2, seed=5) != first).any()
        torch.set_rng_state(before)
    assert network[0].active and not network.training


def test_void_pixels_have_no_say() -> None:
    """In a network of 1x1 convolutions a pixel's loss depends on that pixel alone."""
    network = nn.Conv2d(3, 4, 1)
    images = pictures(2, margin=0.2)
    labels = (torch.arange(40) % 4).view(2, 4, 5)
    labels[:, 1:3, 2:] = 11
    attacked = fgsm(network, images, labels, eps=0.02, void=11)
    touched = (attacked != images).any(1)
    assert (touched == (labels != 11)).all()
    whole = fgsm(network, images, labels.where(labels != 11, 0), eps=0.02)
    kept = touched.unsqueeze(1).expand_as(images)
    assert (attacked[kept] == whole[kept]).all()


def test_budgets_are_of_pixels_whatever_the_normalisation() -> None:
    normalize = Normalize((0.4, 0.5, 0.6), (0.1, 0.2, 0.3))
    inner = Linear()
    network = OnPixels(inner, normalize)
    images, labels = pictures(margin=0.2), labels_of()
    torch.testing.assert_close(network(images), inner(normalize(255 * images)))
    torch.testing.assert_close(OnPixels(inner, normalize, 2.0)(images), network(images) / 2)
    attacked = fgsm(network, images, labels, eps=2 / 255)
    assert (attacked - images).abs().amax((0, 2, 3)) == pytest.approx([2 / 255] * 3, abs=1e-6)


def test_a_network_with_a_coarse_head_is_attacked_at_the_size_of_its_labels() -> None:
    inner = nn.Conv2d(3, 4, 2, stride=2)
    network = OnPixels(inner, Normalize((0.4, 0.5, 0.6), (0.1, 0.2, 0.3)))
    images = torch.rand(1, 3, 8, 10, generator=torch.Generator().manual_seed(0))
    labels = torch.full((1, 8, 10), 11)
    labels[0, 1, 1] = 2
    assert network(images).shape == (1, 4, 8, 10)
    touched = (fgsm(network, images, labels, void=11) != images).any(1)[0]
    assert touched[:4, :4].all() and not touched[4:].any() and not touched[:, 4:].any()  # the four points it is made of


def test_a_caller_in_inference_mode_gets_the_same_attack() -> None:
    network, images, labels = Linear(), pictures(), labels_of()
    expected = pgd(network, images, labels)
    with torch.inference_mode():
        assert (pgd(network, images + 0, labels + 0) == expected).all()
    with torch.no_grad():
        assert (pgd(network, images, labels) == expected).all()


def test_success_is_among_what_was_right_before() -> None:
    labels = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1, 9, 9])
    clean = torch.tensor([0, 0, 0, 0, 1, 0, 1, 1, 0, 9])
    after = torch.tensor([0, 1, 1, 1, 0, 1, 1, 1, 1, 9])
    success = AttackSuccess(void=9)
    for part in (slice(0, 4), slice(4, 10)):
        success.update(clean[part], after[part], labels[part])
    assert success.result() == {
        "samples": 8,
        "clean_accuracy": 6 / 8,
        "attacked_accuracy": 5 / 8,
        "attack_success_rate": 3 / 6,
    }
    maps = AttackSuccess(void=9)
    maps.update(*(x.view(1, 2, 5) for x in (clean, after, labels)))
    assert maps.result() == success.result()


def test_success_where_nothing_was_right_is_undefined() -> None:
    success = AttackSuccess()
    success.update(torch.ones(3), torch.zeros(3), torch.zeros(3))
    assert success.result()["attack_success_rate"] is None
    with pytest.raises(InputError, match="got none"):
        AttackSuccess().result()


def test_gradients_of_nan_are_refused() -> None:
    with pytest.raises(CheckFailed, match="not finite"):
        fgsm(Linear(scale=float("nan")), pictures(), labels_of())
