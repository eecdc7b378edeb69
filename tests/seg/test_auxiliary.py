"""Auxiliary heads: only in training, only in the loss, never in what is kept."""

import copy
from pathlib import Path

import pytest
import torch
from made.trainings import CPU, boxes_folder

from steadyseg.core.model.checkpoint import load_checkpoint
from steadyseg.core.training.config import TrainConfig
from steadyseg.core.training.parts import Run
from steadyseg.core.training.run import train
from steadyseg.seg.networks.auxiliary import DeepSupervision
from steadyseg.seg.networks.build import build_network
from steadyseg.seg.options import AugmentOptions, SegTrainConfig, SmpOptions, UNetOptions
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.seg.train import prepare_segmentation

UNET = UNetOptions(channels=2, depth=3, dropout=0.0, dropout_places=())
SMP = SmpOptions(encoder="resnet18", decoder_channels=(8, 8, 8, 8, 4), decoder_dropout=0.0, head_stride=2)


@pytest.mark.parametrize(("name", "options", "heads"), [("unet", UNET, 1), ("smp", SMP, 3)])
def test_the_network_itself_is_the_same_with_and_without(name, options, heads):
    torch.manual_seed(0)
    network = build_network(name, options, 5)
    deep = copy.deepcopy(DeepSupervision(network, 5))  # as the averaged weights are made
    pictures = torch.rand(2, 3, 64, 96)
    both, alone = deep.train()(pictures), network.train()(pictures)
    logits, *coarse = both
    assert len(coarse) == heads and all(one.shape[:2] == (2, 5) for one in coarse)
    assert all(one.shape[-1] <= logits.shape[-1] for one in coarse) and coarse[0].shape[-1] < logits.shape[-1]
    torch.testing.assert_close(logits, alone)
    torch.testing.assert_close(deep.eval()(pictures), network.eval()(pictures))
    torch.stack([one.sum() for one in coarse]).sum().backward()
    assert all(head.weight.grad is not None and head.weight.grad.any() for head in deep.heads)


def test_a_training_keeps_the_network_alone_and_its_heads_learn(tmp_path: Path) -> None:
    config = SegTrainConfig(
        data=boxes_folder(tmp_path / "data", 8 * [range(1, 5)], background=0),
        unet=UNET,
        size=48,
        loaders=0,
        augment=AugmentOptions(crop_height=32, crop_width=48, paste=0.5, corrupt=0.5),
        loop=TrainConfig(epochs=2, batch_size=2, precision="fp32", threads=1, evaluate_every=0),
        auxiliary=0.4,
    )
    run = Run(tmp_path / "run", CPU)
    training = prepare_segmentation(config, run)
    before = [head.weight.clone() for head in training.network.get_submodule("heads")]
    logits, coarse, targets = torch.randn(1, 11, 32, 48), torch.randn(1, 11, 8, 16), torch.randint(11, (1, 32, 48))
    main, weight = training.loss(logits, targets)
    both, same_weight = training.loss((logits, coarse), targets)
    every = targets[:, 2::4, 1::3]  # the centre of each pixel of the coarse map
    torch.testing.assert_close(both, main + 0.4 * 12 * training.loss(coarse, every)[0])
    assert weight == same_weight
    list(train(training, config, run))
    tensors, _ = load_checkpoint(tmp_path / "run" / "model.safetensors")
    assert not any(name.startswith(("heads", "network")) for name in tensors)
    network = read_segmenter(tmp_path / "run" / "model.safetensors").network()
    assert all(torch.equal(tensor, tensors[name]) for name, tensor in network.state_dict().items())
    after = [head.weight for head in training.network.get_submodule("heads")]
    assert not any(torch.equal(one, other) for one, other in zip(before, after, strict=True))
