"""The computation that a classifier's graph file holds, before it is one: against core's predictor with the same
masks."""

from pathlib import Path

import pytest
import torch
from made.classifier import save_classifier
from torch import Tensor

from steadyseg.classification.exported import ExportedClassifier, repeat
from steadyseg.classification.options import ClassifierOptions
from steadyseg.classification.pretrained import read_classifier
from steadyseg.core.dropout import draw_mask, export_mask, set_dropout_active
from steadyseg.core.predictors import MonteCarlo, OnePass
from steadyseg.core.preprocess import Normalize

NETWORKS = {
    "ours": ClassifierOptions(channels=4, dropout=0.3, smoothing=True),
    "vgg": ClassifierOptions(network="vgg11", channels=2, dropout=0.2),
    "tokens": ClassifierOptions(network="timm:vit_tiny_patch16_224", dropout=0.2, img_size=32, patch_size=16),
}


def exported(folder: Path, name: str, samples: int, temperature: float = 1.0) -> ExportedClassifier:
    model = read_classifier(save_classifier(folder / "c.safetensors", NETWORKS[name]))
    network, meta = model.network(), model.meta
    return ExportedClassifier(network, meta.mean, meta.std, samples, temperature)


def normalised(image: Tensor) -> Tensor:
    return Normalize((0.5, 0.5, 0.5), (0.2, 0.2, 0.2))(image.permute(0, 3, 1, 2))


@pytest.mark.parametrize("name", NETWORKS)
def test_passes_as_a_batch_are_passes_one_by_one(name: str, tmp_path: Path) -> None:
    step, samples, batch = exported(tmp_path, name, 3, temperature=1.5), 3, 2
    image, shapes = step.example(32, batch), step.trace_masks(32)
    torch.manual_seed(0)
    masks = [draw_mask(torch.ones(batch, *shape), call.rate) for shape, call in zip(shapes, step.calls, strict=True)]
    with torch.no_grad():
        probs, total, disagreement, logits = step(image, *masks)
    for layer in set(step.calls):
        own = [mask for mask, call in zip(masks, step.calls, strict=True) if call is layer]
        layer.masks = [mask[:, number] for number in range(samples) for mask in own]
    with torch.no_grad():
        expected = MonteCarlo(step.network, samples, 1.5)(normalised(image))
    torch.testing.assert_close(probs, expected.probs, atol=1e-5, rtol=0)
    torch.testing.assert_close(total, expected.entropy / expected.max_entropy, atol=1e-5, rtol=0)
    torch.testing.assert_close(disagreement, expected.disagreement / expected.max_entropy, atol=1e-5, rtol=0)
    assert logits.shape == (batch, samples, 6) and disagreement.max() > 1e-4 and len(masks) > 3


def test_without_dropout_it_is_one_pass_that_agrees_with_itself(tmp_path: Path) -> None:
    step = exported(tmp_path, "ours", 1)
    set_dropout_active(step.network, False)
    image = step.example(32, 3)
    with torch.no_grad():
        probs, total, disagreement, _ = step(image)
        expected = OnePass(step.network)(normalised(image))
    torch.testing.assert_close(probs, expected.probs)
    torch.testing.assert_close(total, expected.entropy / expected.max_entropy)
    assert disagreement.abs().max() < 1e-6 and step.trace_masks(32) == []


def test_masks_are_drawn_anew_for_every_picture_and_pass_once_none_are_given(tmp_path: Path) -> None:
    step = exported(tmp_path, "ours", 4)
    step.trace_masks(32)
    image = step.example(32, 1).expand(3, -1, -1, -1)
    with torch.no_grad():
        logits = step(image)[3].flatten(0, 1)
    assert len(logits.unique(dim=0)) == 12


def test_every_picture_is_repeated_in_place() -> None:
    pictures = torch.arange(6).view(2, 3)
    found = repeat((4, (pictures, pictures + 1)), 2)
    assert found[0] == 4 and found[1][0].tolist() == [[0, 1, 2], [0, 1, 2], [3, 4, 5], [3, 4, 5]]
    assert torch.equal(found[1][1], found[1][0] + 1)


def test_a_graph_s_masks_are_independent_between_pictures() -> None:
    torch.manual_seed(1)
    draws = torch.stack([export_mask(torch.ones(3, 5, 4, 6), 0.25) > 0 for _ in range(600)]).double()
    assert draws.mean().item() == pytest.approx(0.75, abs=0.01)
    one, other = (draws[:, place].flatten(1) - 0.75 for place in (0, 2))
    correlation = (one * other).mean(0) / (0.25 * 0.75)  # of the same point in two pictures
    assert correlation.abs().max() < 5 / 600**0.5
