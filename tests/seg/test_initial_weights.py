"""A training begins with another network's weights: all of them, or all but the head's."""

from pathlib import Path

import pytest
import torch
from refusals import refusal

from core.classes import CAMVID, CAMVID_31, ClassList
from core.model.checkpoint import CheckpointMeta, save_checkpoint
from seg.networks.build import build_network
from seg.options import SegTrainConfig, SmpOptions, UNetOptions
from seg.train import inherited_licence, load_initial_weights

OPTIONS = {
    "unet": UNetOptions(channels=2, depth=3, dropout_places=("enc3",)),
    "smp": SmpOptions(encoder="resnet18", decoder_channels=(8, 8, 8, 8, 4)),
}


def saved(folder: Path, architecture: str, classes: ClassList) -> tuple[Path, dict[str, torch.Tensor]]:
    torch.manual_seed(1)
    network = build_network(architecture, OPTIONS[architecture], len(classes))
    meta = CheckpointMeta(architecture, {}, classes, 48, 64, (0.5, 0.5, 0.5), (0.2, 0.2, 0.2))
    save_checkpoint(folder / "first.safetensors", network.state_dict(), meta)
    return folder / "first.safetensors", network.state_dict()


@pytest.mark.parametrize(("architecture", "head"), [("unet", "head."), ("smp", "model.segmentation_head.")])
@pytest.mark.parametrize("classes", [CAMVID, CAMVID_31], ids=["same", "other"])
def test_everything_but_a_head_of_other_classes(
    tmp_path: Path, architecture: str, head: str, classes: ClassList
) -> None:
    path, given = saved(tmp_path, architecture, classes)
    torch.manual_seed(2)
    network = build_network(architecture, OPTIONS[architecture], len(CAMVID))
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    load_initial_weights(network, CAMVID, str(path))
    for name, tensor in network.state_dict().items():
        kept = name.startswith(head) and classes != CAMVID
        assert torch.equal(tensor, before[name] if kept else given[name]), name


def test_another_layout_is_refused_in_one_line(tmp_path: Path) -> None:
    path, _ = saved(tmp_path, "unet", CAMVID)
    wider = build_network("unet", UNetOptions(channels=3, depth=3, dropout_places=("enc3",)), len(CAMVID))
    assert "the architecture needs" in refusal(load_initial_weights, wider, CAMVID, str(path))
    assert "a classifier" in refusal(
        load_initial_weights, wider, CAMVID, "classification/checkpoints/cifar10-resnet18-plain.safetensors"
    )


def test_a_network_carries_the_licence_of_what_it_began_with_and_learned_from(tmp_path: Path) -> None:
    path, _ = saved(tmp_path, "unet", CAMVID)
    begun = SegTrainConfig(init="camvid-mobile", teacher=("camvid-realtime", str(path)))
    note = inherited_licence(begun)
    assert "research use" in note and note.count("CC BY-NC") == 1, "one note of two networks, and none of the third"
    assert inherited_licence(SegTrainConfig(init=str(path))) == "" == inherited_licence(SegTrainConfig())
