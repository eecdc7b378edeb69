"""The computation that a classifier's graph file holds, before it is one: passes as a batch against passes one by one.

Every export proves the graph against the same passes (tests/export/test_classifier.py).
"""

from pathlib import Path

import pytest
import torch
from made.classifier import save_classifier

from steadyseg.classification.exported import ExportedClassifier
from steadyseg.classification.options import ClassifierOptions
from steadyseg.classification.pretrained import read_classifier
from steadyseg.core.dropout import draw_mask, set_dropout_active

NETWORKS = {
    "ours": ClassifierOptions(channels=4, dropout=0.3, smoothing=True),
    "vgg": ClassifierOptions(network="vgg11", channels=2, dropout=0.2),
    "tokens": ClassifierOptions(network="timm:vit_tiny_patch16_224", dropout=0.2, img_size=32, patch_size=16),
}


@torch.no_grad()
@pytest.mark.parametrize("name", NETWORKS)
def test_passes_as_a_batch_are_passes_one_by_one(name: str, tmp_path: Path) -> None:
    model = read_classifier(save_classifier(tmp_path / "c.safetensors", NETWORKS[name]))
    step = ExportedClassifier(model.network(), model.meta.mean, model.meta.std, 3, 1.5)
    image, shapes = step.example(32), step.trace_masks(32)
    torch.manual_seed(0)
    masks = [draw_mask(torch.ones(2, *shape), call.rate) for shape, call in zip(shapes, step.calls, strict=True)]
    found = step(image, *masks)
    for one, other in zip(found, step.pass_by_pass(image, masks).values(), strict=False):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=0)
    assert found[3].shape == (2, 3, 6) and found[2].max() > 1e-4 and len(masks) > 3
    drawn = step(image[:1].expand(3, -1, -1, -1))[3].flatten(0, 1)  # without masks every picture and pass draws its own
    assert len(drawn.unique(dim=0)) == 9
    set_dropout_active(step.network, False)
    assert step.trace_masks(32) == [] and step(image)[2].abs().max() < 1e-6
