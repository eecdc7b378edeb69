"""Options that make no sense for a classifier, and pictures that it cannot take: one line each, with the reason."""

from typing import Any

import pytest
import torch
from made.classifier import random_input
from refusals import refusal

from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.options import ClassifierOptions

VIT = "timm:vit_tiny_patch16_224"
SMOOTHED = {"smoothing": True}
OPTIONS: list[tuple[str, dict[str, Any], str]] = [
    ("resnet_18", {}, "did you mean resnet18"),
    ("what", {}, "known are alexnet, vgg11"),
    ("resnet18", {"colour": "blue"}, "unknown option 'colour'"),
    ("resnet18", {"network": 5}, "network of a classifier must be a text, got 5"),
    ("resnet18", {"channels": "wide"}, "must be a whole number, got 'wide'"),
    ("resnet18", {"stem": 1}, "must be true or false"),
    ("resnet18", {"dropout": None}, "must be a number"),
    ("resnet18", {"head": "max"}, "gap, mlp, gmaxp, gmedp, gap-clip, gap-mlp, bn-gap, cls or none"),
    ("resnet18", SMOOTHED | {"smoothing_places": 3}, "whole numbers or none, got 3"),
    ("resnet18", {"channels": 0}, "channels must lie in"),
    ("resnet18", {"dropout": float("nan")}, "dropout must lie in"),
    ("resnet18", {"dropout": 0.001}, "would round to none"),
    ("resnet18", SMOOTHED | {"blur": 4}, "blur size"),
    ("resnet18", {"blur": 3}, "does nothing without smoothing"),
    ("resnet18", SMOOTHED | {"smoothing_places": [5]}, "one or more of 1..4, got 5"),
    ("resnet18", SMOOTHED | {"smoothing_places": []}, "got none"),
    ("resnet18", SMOOTHED | {"prob_scale": 0.0}, "prob_scale must lie in"),
    ("resnet18", {"head": "bn-gap"}, "choose from gap, mlp, gmaxp, gmedp"),
    ("resnet18", {"attention": [0, 1, 1, 2]}, "does not apply to resnet18 but to alternet"),
    ("resnet18", {"img_size": 32}, "does not apply to resnet18 but to vit, pit, timm:NAME"),
    ("vgg16", {"stem": True}, "does not apply to vgg16"),
    ("resnext50", {"channels": 8}, "multiples of 16"),
    ("resnext101", {"channels": 4}, "multiples of 8"),
    ("alternet50", {"attention": [0, 1, 1]}, "may be at most 1,2,3,2, got 0,1,1"),
    ("alternet50", {"attention": [2, 1, 1, 1]}, "may be at most 1,2,3,2"),
    ("alternet18", {"attention": [0, 0, 0, -1]}, "may be at most 1,1,1,1"),
    ("alternet18", {"attention_window": 0}, "attention_window must lie in"),
    ("vit6", {"channels": 100}, "multiples of its attention heads' 64"),
    ("vit6", {"img_size": 30, "patch_size": 4}, "multiple of patch_size 4, got 30"),
    ("vit6", {"patch_size": 4, "attention_window": 4}, "must be odd or at least the grid's 8, got 4"),
    ("vit6", {"img_size": 512}, "256 patches a side, at most 64"),
    ("vit6", SMOOTHED, "smoothing does not apply to vit6"),
    ("vit6", {"head": "mlp"}, "choose from cls, gap"),
    ("pit6", {"patch_size": 3}, "must be even"),
    ("pit6", {"patch_size": 34}, "got 34 and 32"),
    ("pit6", {"img_size": 33, "patch_size": 4}, "a multiple of its half, got 4 and 33"),
    ("swin6", {"channels": 48}, "multiples of its attention heads' 32"),
    ("swin6", {"img_size": 32}, "img_size does not apply to swin6"),
    ("timm:resnet_18", {}, "did you mean timm:resnet18"),
    ("timm:hf-hub:timm/resnet18.a1_in1k", {}, "timm has no network"),
    ("timm:resnet18.nonsense", {}, "Invalid pretrained tag"),
    ("timm:resnet18", {"img_size": 32}, "has no option img_size"),
    ("timm:resnet18", {"img_size": 0}, "img_size must lie in 1"),
    ("timm:resnet18", {"channels": 32}, "channels does not apply to timm:resnet18"),
    ("timm:resnet18", SMOOTHED | {"prob_scale": 2.0}, "does not apply to timm:resnet18"),
    ("timm:resnet18", SMOOTHED | {"padding": "published"}, "whose shapes must stay"),
    ("timm:vgg11", {"stochastic_depth": 0.1}, "has no option stochastic_depth"),
    (VIT, {"img_size": 32, "patch_size": 64}, "takes no picture"),
    (VIT, {"img_size": 32, "patch_size": 16} | SMOOTHED, "nothing to smooth before"),
]


@pytest.mark.parametrize(("network", "options", "says"), OPTIONS, ids=str)
def test_options_that_make_no_sense(network: str, options: dict[str, Any], says: str) -> None:
    """They may come from a file's record, so wrong types are bad input too."""
    assert says in refusal(build_classifier, {"network": network} | options, 4)


def test_pretrained_weights_of_our_networks_and_weights_that_cannot_be_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    ours, theirs = (ClassifierOptions(name, pretrained=True) for name in ("resnet18", "timm:resnet10t"))
    assert "does not apply to resnet18 but to timm:NAME" in refusal(build_classifier, ours, 4)
    said = refusal(build_classifier, theirs, 4)
    assert "weights of timm:resnet10t cannot be fetched" in said and "go online" in said
    build_classifier({"network": "timm:resnet10t", "pretrained": True}, 5)  # a record never fetches them again


@torch.no_grad()
@pytest.mark.parametrize(
    ("network", "options", "least"),
    [
        ("vgg11", {}, 32),
        ("vgg11", {"head": "gap"}, 16),
        ("vgg11", {"head": "gmedp"}, 32),
        ("alexnet", {}, 15),
        ("alexnet", {"stem": True}, 63),
        ("alexnet", {"stem": True, "smoothing": True}, 35),
        ("resnet18", {"head": "gmedp"}, 9),
    ],
    ids=str,
)
def test_pictures_that_are_too_small(network: str, options: dict[str, Any], least: int) -> None:
    built = build_classifier({"network": network, "channels": 8} | options, 5).eval()
    assert built(random_input(least)).isfinite().all()
    for side in {1, 3, least - 1}:
        assert "pictures" in refusal(built, random_input(side))


def test_pictures_of_another_size() -> None:
    for network, options, side in (("vit6", {"channels": 64}, 32), (VIT, {"img_size": 32, "patch_size": 16}, 32)):
        built = build_classifier({"network": network} | options, 5)
        assert f"built for {side} x {side} pixels and got 64 x 64" in refusal(built, random_input(64))
