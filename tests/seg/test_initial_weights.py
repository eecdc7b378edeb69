"""A training begins with another network's weights: all of them, or all but the head's."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made.classifier import ANIMALS, save_classifier, save_pictures
from refusals import refusal
from torch import nn

from steadyseg.classification.options import ClassifierOptions, ClassTrainConfig
from steadyseg.classification.pretrained import read_classifier
from steadyseg.classification.train import prepare_classification
from steadyseg.core.classes import CAMVID, CAMVID_31, ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.model.checkpoint import CheckpointMeta, save_checkpoint
from steadyseg.core.training.initial_weights import inherited_licence, load_initial_weights
from steadyseg.core.training.parts import Run
from steadyseg.seg.networks.build import build_network
from steadyseg.seg.options import SmpOptions, UNetOptions
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.seg.train import read_initial

OPTIONS = {
    "unet": UNetOptions(channels=2, depth=3, dropout_places=("enc3",)),
    "smp": SmpOptions(encoder="resnet18", decoder_channels=(8, 8, 8, 8, 4)),
}

RECOLOURED = ClassList(CAMVID.names, CAMVID.colors[::-1], 200)


def saved(folder: Path, architecture: str, classes: ClassList) -> tuple[Path, dict[str, torch.Tensor]]:
    torch.manual_seed(1)
    network = build_network(architecture, OPTIONS[architecture], len(classes))
    meta = CheckpointMeta(architecture, {}, classes, 48, 64, (0.5, 0.5, 0.5), (0.2, 0.2, 0.2))
    save_checkpoint(folder / "first.safetensors", network.state_dict(), meta)
    return folder / "first.safetensors", network.state_dict()


@pytest.mark.parametrize(("architecture", "head"), [("unet", "head."), ("smp", "model.segmentation_head.")])
@pytest.mark.parametrize("classes", [CAMVID, RECOLOURED, CAMVID_31], ids=["same", "recoloured", "other"])
def test_everything_but_a_head_of_other_classes(
    tmp_path: Path, architecture: str, head: str, classes: ClassList
) -> None:
    path, given = saved(tmp_path, architecture, classes)
    torch.manual_seed(2)
    network = build_network(architecture, OPTIONS[architecture], len(CAMVID))
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    load_initial_weights(network, read_initial(str(path)), CAMVID, nn.Conv2d)
    for name, tensor in network.state_dict().items():
        kept = name.startswith(head) and classes == CAMVID_31
        assert torch.equal(tensor, before[name] if kept else given[name]), name


def test_another_layout_is_refused_in_one_line(tmp_path: Path) -> None:
    path, _ = saved(tmp_path, "unet", CAMVID)
    wider = build_network("unet", UNetOptions(channels=3, depth=3, dropout_places=("enc3",)), len(CAMVID))
    assert "the architecture needs" in refusal(load_initial_weights, wider, read_initial(str(path)), CAMVID, nn.Conv2d)
    assert "a classifier" in refusal(read_initial, "classification/checkpoints/cifar10-resnet18-plain.safetensors")


@pytest.mark.parametrize("names", [ANIMALS, ANIMALS[:4]], ids=["same", "other"])
def test_a_classifier_begins_with_another_ones_weights_but_for_a_last_layer_of_other_classes(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    data, options = save_pictures(tmp_path / "data", 4, names=names), ClassifierOptions(channels=4)
    path = save_classifier(tmp_path / "first.safetensors", options, size=40, licence="for friends")
    config = ClassTrainConfig(data, options, init=str(path))
    parts = prepare_classification(config, Run(tmp_path / "run", torch.device("cpu")))
    given, own = read_classifier(path).tensors, parts.network.state_dict()
    same = {name: torch.equal(own[name], given[name]) for name in given if own[name].shape == given[name].shape}
    assert all(same.values()) and len(given) - len(same) == (0 if names == ANIMALS else 2)
    random = "the initial weights have other classes, so the last layer begins with random weights"
    assert parts.about == (() if names == ANIMALS else (random,))
    assert parts.describe(0.0).licence == "for friends"
    with pytest.raises(InputError, match="the architecture needs"):
        prepare_classification(
            replace(config, classifier=ClassifierOptions(channels=6)), Run(tmp_path, torch.device("cpu"))
        )


def test_a_network_carries_the_licence_of_what_it_began_with_and_learned_from(tmp_path: Path) -> None:
    path, _ = saved(tmp_path, "unet", CAMVID)
    note = inherited_licence(read_segmenter(name).meta for name in ("road-mobile", "road-realtime", str(path)))
    assert "research only" in note and note.count("CC BY-NC") == 1, "one note of two networks, and none of the third"
    assert inherited_licence([read_segmenter(path).meta]) == "" == inherited_licence([])
