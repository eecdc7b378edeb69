"""The U-Net against a second one written with plain functions, its published layout, and the sizes of every option."""

import dataclasses
import itertools
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steadyseg.core.dropout import Dropout, set_dropout_active
from steadyseg.core.options import PaddingName
from steadyseg.core.smoothing import SpatialSmoothing
from steadyseg.seg.networks.build import build_network
from steadyseg.seg.networks.staged import stage_names
from steadyseg.seg.networks.unet import UNet
from steadyseg.seg.options import PUBLISHED_PLACES, UNetOptions

NAMES = ("enc1", "enc2", "enc3", "enc4", "enc5", "dec6", "dec7", "dec8", "dec9")


def built(classes: int = 4, **options: Any) -> UNet:
    """A U-Net in double precision, in eval, with weights that carry a signal of about 1 through every stage."""
    torch.manual_seed(0)
    unet = UNet(classes, UNetOptions(**({"channels": 2} | options)))
    for module in unet.modules():
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
            nn.init.kaiming_normal_(module.weight)
            if module.bias is not None:
                nn.init.uniform_(module.bias, -0.2, 0.2)
        if isinstance(module, nn.BatchNorm2d):
            for name, low, high in (
                ("weight", 0.5, 1.5),
                ("bias", -0.3, 0.3),
                ("running_mean", -0.2, 0.2),
                ("running_var", 0.5, 1.5),
            ):
                nn.init.uniform_(getattr(module, name), low, high)
    return unet.double().eval()


def picture(height: int, width: int, batch: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(height * 1000 + width)
    return torch.randn(batch, 3, height, width, dtype=torch.float64, generator=generator)


class Written:
    """The network once more: functions over the tensors in their order, no module but dropout's masks."""

    def __init__(self, unet: UNet) -> None:
        self.options = unet.options
        self.tensors = iter([t for name, t in unet.state_dict().items() if not name.endswith("num_batches_tracked")])

    def take(self, count: int) -> list[Tensor]:
        return [next(self.tensors) for _ in range(count)]

    def norm(self, x: Tensor) -> Tensor:
        gain, shift, mean, variance = (t.view(1, -1, 1, 1) for t in self.take(4))
        return (x - mean) / (variance + 1e-5).sqrt() * gain + shift

    def norm_and_relu(self, x: Tensor) -> Tensor:
        if self.options.order == "conv-relu-bn":
            return self.norm(x.clamp_min(0))
        return self.norm(x).clamp_min(0)

    def convs(self, x: Tensor, count: int) -> Tensor:
        for _ in range(count):
            weight, bias = self.take(2)
            x = self.norm_and_relu(F.conv2d(x, weight, bias, padding=1))
        return x

    def pooled(self, x: Tensor) -> Tensor:
        if self.options.smoothing:
            x = (10 * (x / 10).tanh()).clamp_min(0)
            around = F.pad(x, (1, 1, 1, 1))
            x = (around[..., 1:, 1:] + around[..., :-1, 1:] + around[..., 1:, :-1] + around[..., :-1, :-1]) / 4
            x = x[..., : x.shape[-2] // 2 * 2, : x.shape[-1] // 2 * 2]  # floor pooling of the grown map
        else:  # "same" pooling: a missing last row or column takes no part
            odd = (0, x.shape[-1] % 2, 0, x.shape[-2] % 2)
            x = F.pad(x, odd, value=float("-inf"))
        return x.unfold(2, 2, 2).unfold(3, 2, 2).amax((-2, -1))

    def enlarged(self, x: Tensor, skip: Tensor) -> Tensor:
        (weight,) = self.take(1)
        up = F.conv_transpose2d(x, weight, stride=2, padding=1, output_padding=1)
        return self.norm_and_relu(up[..., : skip.shape[-2], : skip.shape[-1]]) + skip

    def __call__(self, x: Tensor, masks: dict[str, Tensor]) -> Tensor:
        skips = []
        for stage, count in enumerate((2, 2, 3, 3, 3), start=1):
            x = self.convs(x if stage == 1 else self.pooled(x), count)
            skips.append(x)  # before the dropout
            x = x * masks.get(f"enc{stage}", 1)
        skips.pop()
        for stage, count in enumerate((3, 3, 3, 2), start=6):
            x = self.convs(self.enlarged(x, skips.pop()), count)
            x = x * masks.get(f"dec{stage}", 1)
        weight, bias = self.take(2)
        logits = F.conv2d(x, weight, bias)
        assert next(self.tensors, None) is None  # nothing is left over
        return logits


@pytest.mark.parametrize(
    ("size", "smoothing", "order"),
    [((37, 51), False, "conv-relu-bn"), ((37, 51), True, "conv-bn-relu"), ((32, 48), True, "conv-relu-bn")],
)
def test_the_network_is_the_published_one(size: tuple[int, int], smoothing: bool, order: str) -> None:
    unet, x = built(smoothing=smoothing, dropout=0.5, order=order), picture(*size)
    seen: dict[str, Tensor] = {}
    places = [name for name in NAMES if name in PUBLISHED_PLACES]
    layers = [module for module in unet.dropouts if isinstance(module, Dropout)]
    for place, layer in zip(places, layers, strict=True):
        layer.register_forward_hook(lambda _, inputs, out, place=place: seen.update({place: inputs[0]}))
    with torch.no_grad():
        unet(x)
        masks = {place: 2.0 * (torch.rand_like(shape) < 0.5) for place, shape in seen.items()}
        for place, layer in zip(places, layers, strict=True):
            layer.masks = [masks[place]]
        torch.testing.assert_close(unet(x), Written(unet)(x, masks), rtol=1e-9, atol=1e-9)
        set_dropout_active(unet, False)
        torch.testing.assert_close(unet(x), Written(unet)(x, {}), rtol=1e-9, atol=1e-9)


def test_a_record_without_an_order_has_the_published_one() -> None:
    old = dataclasses.asdict(UNetOptions(channels=2))
    del old["order"]
    network: Any = build_network("unet", old, 4)
    assert network.options.order == "conv-relu-bn"
    assert UNetOptions().order == "conv-bn-relu"


def test_the_published_layout_at_width_64() -> None:
    with torch.device("meta"):
        unet = UNet(11, UNetOptions(channels=64, smoothing=False))
    convs = [[m for m in stage.modules() if isinstance(m, nn.Conv2d)] for stage in unet.stages]
    assert [len(stage) for stage in convs] == [2, 2, 3, 3, 3, 3, 3, 3, 2]
    widths = [64, 128, 256, 512, 1024, 512, 256, 128, 64]
    for stage, width in zip(convs, widths, strict=True):
        assert all(conv.out_channels == width and conv.kernel_size == (3, 3) for conv in stage)
        assert all(conv.bias is not None for conv in stage)
    ups = [m for m in unet.modules() if isinstance(m, nn.ConvTranspose2d)]
    assert [(up.in_channels, up.out_channels) for up in ups] == [(1024, 512), (512, 256), (256, 128), (128, 64)]
    assert all(up.bias is None and up.kernel_size == (3, 3) and up.stride == (2, 2) for up in ups)
    assert unet.head.kernel_size == (1, 1) and unet.head.bias is not None and unet.head.out_channels == 11
    dropped = [n for n, layer in zip(NAMES, unet.dropouts, strict=True) if isinstance(layer, Dropout)]
    assert tuple(dropped) == PUBLISHED_PLACES == ("enc3", "enc4", "enc5", "dec6", "dec7", "dec8")
    assert all(layer.rate == 0.5 for layer in unet.dropouts if isinstance(layer, Dropout))


@pytest.mark.parametrize("blur", [1, 2, 3, 5])
@pytest.mark.parametrize("padding", ["published", "same"])
def test_every_option_gives_the_size_of_its_input(padding: PaddingName, blur: int) -> None:
    sizes = itertools.cycle([(16, 16), (33, 47), (31, 18), (17, 29)])
    for depth, skip, smoothing in itertools.product((2, 3, 5), ("before", "after"), (True, False)):
        options = UNetOptions(1, depth, 0.5, (f"enc{depth}",), smoothing, "tanh", blur, padding, skip)  # type: ignore[arg-type]
        height, width = next(sizes)
        with torch.no_grad():
            assert UNet(3, options).eval()(torch.zeros(1, 3, height, width)).shape == (1, 3, height, width)


@pytest.mark.parametrize("size", [(1, 1), (3, 5)])
def test_images_smaller_than_the_depth_pass(size: tuple[int, int]) -> None:
    with torch.no_grad():
        assert built()(picture(*size)).shape == (1, 4, *size)


def test_the_skip_is_taken_before_or_after_the_smoothing() -> None:
    """With the deep path silenced, stage 9 sees the skip alone: at first raw, then smoothed and never negative."""
    x, found = picture(24, 24), {}
    for skip in ("before", "after"):
        unet = built(skip=skip, dropout=0.0, order="conv-relu-bn")  # a stage ends with negative values
        unet.stages[-1].register_forward_hook(lambda _, inputs, out, s=skip: found.update({s: inputs[0].skips[0]}))
        first: list[Tensor] = []
        unet.stages[0].register_forward_hook(lambda _, inputs, out, first=first: first.append(out.x))
        with torch.no_grad():
            unet(x)
            expected = first[0] if skip == "before" else SpatialSmoothing()(first[0])[..., :24, :24]
        torch.testing.assert_close(found[skip], expected, rtol=0, atol=1e-12)
    assert found["before"].min() < 0 <= found["after"].min()


def test_rate_zero_makes_no_dropout_layer() -> None:
    assert not [m for m in built(dropout=0.0).modules() if isinstance(m, Dropout)]


def test_every_weight_gets_a_gradient() -> None:
    unet = built().train()
    unet(picture(32, 32, batch=2)).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() and p.grad.any() for p in unet.parameters())


def test_stages_are_counted_as_published() -> None:
    assert tuple(stage_names(5, 4)) == NAMES and stage_names(2, 1) == ["enc1", "enc2", "dec3"]


def test_the_options_of_a_record_build_the_same_network() -> None:
    """JSON turns the tuple of dropout places into a list."""
    options = dataclasses.asdict(UNetOptions(channels=2, dropout_places=("enc3", "dec8")))
    unet = build_network("unet", options | {"dropout_places": ["enc3", "dec8"]}, 4)
    assert isinstance(unet, UNet) and unet.options == UNetOptions(channels=2, dropout_places=("enc3", "dec8"))
