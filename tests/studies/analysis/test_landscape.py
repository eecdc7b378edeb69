"""Directions rescaled by both rules, and the centre of the plane."""

import torch
from made.classifier import random_input
from refusals import refusal

from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.options import ClassifierOptions
from steadyseg.studies.analysis.measures.landscape import (
    grid,
    moved,
    moving_weights,
    random_direction,
    squared_norm,
    sum_of_norms,
)


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return build_classifier(ClassifierOptions(channels=4, smoothing=True), 3).eval()


def test_directions_have_the_norms_of_the_weights_by_their_rule() -> None:
    weights = moving_weights(network())
    assert "stem.0.weight" in weights and not any("1.bias" in name or "running" in name for name in weights)
    for rule, over in (("filter", (1, 2, 3)), ("axis0", (0,))):
        direction = random_direction(weights, rule, seed=5)  # type: ignore[arg-type]
        name = "stage1.0.first.0.weight"
        ours, theirs = (torch.linalg.vector_norm(x[name], dim=over) for x in (direction, weights))
        torch.testing.assert_close(ours, theirs)
        again, other = (random_direction(weights, rule, seed)[name] for seed in (5, 6))  # type: ignore[arg-type]
        assert torch.equal(again, direction[name]) and not torch.equal(other, again)
    zero = random_direction({"w": torch.zeros(3, 2)}, "filter", 0)["w"]
    assert torch.equal(zero, torch.zeros(3, 2))


def test_the_centre_is_the_network_and_it_comes_back() -> None:
    net, pictures = network(), random_input()
    weights = moving_weights(net)
    ways = [random_direction(weights, "filter", seed) for seed in (1, 2)]
    with torch.no_grad():
        before = net(pictures)
        with moved(net, weights, [(0.0, ways[0]), (0.0, ways[1])]):
            assert torch.equal(net(pictures), before)
        with moved(net, weights, [(0.5, ways[0]), (-0.25, ways[1])]):
            name = "head.2.weight"
            expected = weights[name] + 0.5 * ways[0][name] - 0.25 * ways[1][name]
            torch.testing.assert_close(dict(net.named_parameters())[name].data, expected)
            assert not torch.allclose(net(pictures), before)
        assert torch.equal(net(pictures), before)


def test_both_norms_of_the_weights() -> None:
    layer = torch.nn.Linear(2, 1)
    layer.weight.data, layer.bias.data = torch.tensor([[3.0, 4.0]]), torch.tensor([2.0])
    assert squared_norm(layer) == 29.0 and sum_of_norms(layer) == 7.0


def test_the_grid_has_a_middle() -> None:
    assert grid(5, 1.0) == [-1.0, -0.5, 0.0, 0.5, 1.0]
    assert "odd number of points" in refusal(grid, 20, 1.0)
