"""SegNet against a second one by torch's own unpooling, its published layout, odd sizes, and its exported graphs."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steadyseg.app.cli import main
from steadyseg.core.classes import CAMVID
from steadyseg.core.dropout import Dropout, set_dropout_active
from steadyseg.core.model.checkpoint import CheckpointMeta, save_checkpoint
from steadyseg.export.file.onnx_file import read_onnx
from steadyseg.export.file.sessions import session_runner
from steadyseg.seg.networks.segnet import SegNet
from steadyseg.seg.options import PUBLISHED_PLACES, SegNetOptions

NAMES = ("enc1", "enc2", "enc3", "enc4", "enc5", "dec6", "dec7", "dec8", "dec9", "dec10")


def built(channels: int = 2, classes: int = 4) -> SegNet:
    """A SegNet in double precision, in eval, with BatchNorms that have an effect."""
    torch.manual_seed(0)
    network = SegNet(classes, SegNetOptions(segnet_channels=channels))
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 1.0, 3.0)
            nn.init.uniform_(module.bias, -0.3, 0.3)
            nn.init.uniform_(module.running_mean, -0.2, 0.2)
    return network.double().eval()


def written(network: SegNet, x: Tensor, masks: dict[str, Tensor]) -> Tensor:
    """The published network once more, by functions: `max_pool2d` and `max_unpool2d` with indices and sizes."""
    tensors = iter([t for name, t in network.state_dict().items() if not name.endswith("num_batches_tracked")])

    def convs(x: Tensor, count: int) -> Tensor:
        for _ in range(count):
            weight, bias, gain, shift, mean, variance = (next(tensors) for _ in range(6))
            x = F.batch_norm(F.conv2d(x, weight, bias, padding=1), mean, variance, gain, shift).relu()
        return x

    undo = []
    for stage, count in enumerate((2, 2, 3, 3, 3), start=1):
        x = convs(x, count)
        if stage < 5:
            size = x.shape[-2:]
            x, indices = F.max_pool2d(x, 2, ceil_mode=True, return_indices=True)
            undo.append((indices, size))
        x = x * masks.get(f"enc{stage}", 1)  # after the pooling
    for stage, count in enumerate((3, 3, 3, 2, 1), start=6):
        if stage > 6:
            indices, size = undo.pop()
            x = F.max_unpool2d(x, indices, 2, output_size=size)
        x = convs(x, count) * masks.get(f"dec{stage}", 1)
    logits = F.conv2d(x, next(tensors), next(tensors))
    assert next(tensors, None) is None
    return logits


@pytest.mark.parametrize("size", [(40, 56), (45, 60), (1, 1)], ids=str)
def test_the_network_is_the_published_one_for_odd_heights_too(size: tuple[int, int]) -> None:
    """40 rows are 5 at the fourth pool and 45 are 23 at the second: the last windows are half outside of the map."""
    network, seen = built(), dict[str, Tensor]()
    x = torch.randn(2, 3, *size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    layers = {name: one for name, one in zip(NAMES, network.dropouts, strict=True) if isinstance(one, Dropout)}
    assert tuple(layers) == PUBLISHED_PLACES
    for place, layer in layers.items():
        layer.register_forward_hook(lambda _, inputs, out, place=place: seen.update({place: inputs[0]}))
    with torch.no_grad():
        network(x)
        masks = {place: 2.0 * (torch.rand_like(value) < 0.5) for place, value in seen.items()}
        for place, layer in layers.items():
            layer.masks = [masks[place]]
        torch.testing.assert_close(network(x), written(network, x, masks), rtol=1e-9, atol=1e-9)
        set_dropout_active(network, False)
        torch.testing.assert_close(network(x), written(network, x, {}), rtol=1e-9, atol=1e-9)


def test_the_published_width_has_the_parameters_counted_by_hand() -> None:
    widths = [64, 64, 128, 128, *[256] * 3, *[512] * 3, *[512] * 3]
    widths += [512, 512, 512, 512, 512, 256, 256, 256, 128, 128, 64, 64]
    pairs = list(zip((3, *widths), widths, strict=False))
    expected = sum(9 * before * after + after + 2 * after for before, after in pairs) + 64 * 11 + 11
    with torch.device("meta"):
        network = SegNet(11, SegNetOptions(segnet_channels=64))
    assert sum(p.numel() for p in network.parameters()) == expected == PUBLISHED_PARAMETERS


PUBLISHED_PARAMETERS = 29_443_723
"""25 convolutions with BatchNorm and the head; the original SegNet has one pool more, and pools have no weights."""


def test_every_weight_gets_a_gradient() -> None:
    network = built().train()
    network(torch.randn(2, 3, 40, 56, dtype=torch.float64)).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() and p.grad.any() for p in network.parameters())


@pytest.mark.long
def test_the_exported_graphs_compute_what_torch_computes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command proves outputs, state and random draws, or writes no file; video then runs the file as it is. The
    network alone is run at a height that is odd at the fourth pool too."""
    options = {"segnet_channels": 4}
    network = built(4, len(CAMVID)).float()
    meta = CheckpointMeta("segnet", options, CAMVID, 96, 128, (0.4,) * 3, (0.3,) * 3)
    model, stream, alone = (str(tmp_path / name) for name in ("s.safetensors", "s.onnx", "n.onnx"))
    save_checkpoint(Path(model), network.state_dict(), meta)
    assert main(["export", model, "--stateful", "--mode", "vq-bnn", "--motion", "off", "-o", stream]) == 0
    assert "proof" in capsys.readouterr().err
    assert main(["video", "street:7:3", "--model", stream, "-o", str(tmp_path / "v.mp4")]) == 0
    assert main(["export", model, "-o", alone]) == 0
    x = torch.randn(1, 3, 104, 152, generator=torch.Generator().manual_seed(2))
    got = torch.from_numpy(session_runner(read_onnx(Path(alone)).model)({"image": x.numpy()})["logits"])
    set_dropout_active(network, False)
    with torch.no_grad():
        apart = (torch.softmax(network(x), 1) - torch.softmax(got, 1)).abs()
    assert apart.mean() < 1e-5 and got.shape == (1, len(CAMVID), 104, 152)
