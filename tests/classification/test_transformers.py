"""Vision transformers, PiT and Swin: the published networks by timm's weights, local attention, heads, their parts."""

from typing import Any

import pytest
import torch
from made.classifier import random_input
from torch import Tensor, nn

from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.networks.vit import ResidualUnit, TokenAttention, local_mask
from steadyseg.classification.options import ClassifierOptions
from steadyseg.core.stages import StageFeatures, named_stages
from steadyseg.core.training.config import TrainConfig
from steadyseg.core.training.loop import make_optimizer


def built(network: str, classes: int = 5, **options: Any) -> Any:
    torch.manual_seed(0)
    return build_classifier(ClassifierOptions(network, **options), classes).eval()


RENAMED = {"branch.to_qkv": "attn.qkv", "branch.to_out": "attn.proj", "branch.0": "mlp.fc1", "branch.2": "mlp.fc2"}


def timms_names(ours: Any, blocks: str, pools: str = "") -> dict[str, Tensor]:
    """Our parameters but the stem's by timm's names; `blocks` is timm's name of the block of a number."""
    found: dict[str, Tensor] = {}
    for name, tensor in ours.named_parameters():
        part, _, rest = name.partition(".")
        kind, number = part.rstrip("0123456789"), int("".join(filter(str.isdigit, part)) or 0) - 1
        for before, after in RENAMED.items():
            rest = rest.replace(before, after)
        if kind in ("attention", "mlp"):
            rest = rest.replace("norm", "norm1" if kind == "attention" else "norm2")
            found[f"{blocks.format(number, number // 2, number % 2)}.{rest}"] = tensor
        elif kind == "pool":
            found[f"{pools.format(number)}.{rest.replace('patches', 'conv').replace('class_token', 'fc')}"] = tensor
        elif kind == "head":
            found[name.replace("head.norm", "norm").replace("head.linear", "head")] = tensor
    return found


@torch.no_grad()
@pytest.mark.parametrize("head", ["cls", "gap"])
def test_vit_computes_what_timms_does_with_the_same_weights(head: str) -> None:
    from timm.models.vision_transformer import VisionTransformer

    ours, token = built("vit6", channels=128, head=head), head == "cls"
    pool, parts = "token" if token else "avg", {"embed_dim": 128, "depth": 6, "num_heads": 2}
    options = {"qkv_bias": False, "class_token": token, "fc_norm": False, "norm_layer": nn.LayerNorm}
    theirs = VisionTransformer(32, 2, num_classes=5, global_pool=pool, **parts, **options).eval()
    weights = {f"patch_embed.proj.{name}": tensor for name, tensor in ours.stem.patches.named_parameters()}
    weights |= {"pos_embed": ours.stem.positions.view(1, -1, 128), **timms_names(ours, "blocks.{0}")}
    if token:
        weights["cls_token"] = ours.stem.class_token.view(1, 1, 128)
    for tensor in weights.values():  # LayerNorm's weights too
        nn.init.normal_(tensor, std=0.1)
    theirs.load_state_dict(weights)
    torch.testing.assert_close(ours(random_input(32)), theirs(random_input(32)), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_pit_computes_what_timms_does_with_the_same_weights() -> None:
    from timm.models.pit import PoolingVisionTransformer

    ours = built("pit6", channels=64, patch_size=4)
    parts = {"base_dims": (32, 32, 32), "depth": (2, 2, 2), "heads": (2, 4, 8), "mlp_ratio": 4}
    theirs = PoolingVisionTransformer(32, 4, 2, stem_type="overlap", num_classes=5, **parts).eval()
    weights = timms_names(ours, "transformers.{1}.blocks.{2}", "transformers.{0}.pool")
    weights |= {f"patch_embed.conv.{name}": tensor for name, tensor in ours.stem.patches.named_parameters()}
    weights["cls_token"] = ours.stem.class_token.view(1, 1, 64)
    weights["pos_embed"] = ours.stem.positions.view(226, 64)[1:].T.view(1, 64, 15, 15)
    nn.init.zeros_(ours.stem.positions[:64])  # theirs has no position of the class token
    for tensor in ours.parameters():
        if tensor.ndim < 2 and tensor is not ours.stem.positions:
            nn.init.normal_(tensor, std=0.1)  # LayerNorm's weights and all biases
    missing, unexpected = theirs.load_state_dict(weights, strict=False)
    assert not unexpected and all(name.endswith("qkv.bias") for name in missing)  # ours have none
    for name in missing:
        nn.init.zeros_(theirs.get_parameter(name))
    torch.testing.assert_close(ours(random_input(32)), theirs(random_input(32)), rtol=1e-4, atol=1e-5)


def test_swin_attends_and_shifts_as_timms_does() -> None:
    from timm.models.swin_transformer import SwinTransformerBlock

    ours = built("swin6", channels=64, patch_size=2)
    for number, shift in ((1, 0), (2, 2)):
        theirs = SwinTransformerBlock(64, (16, 16), 2, window_size=4, shift_size=shift, qkv_bias=False).eval()
        attention, perceptron = getattr(ours, f"attention{number}"), getattr(ours, f"mlp{number}")
        nn.init.normal_(attention.branch.position_bias)
        # timm's table has a column for each head and counts offsets from query to key the other way round
        table = attention.branch.position_bias.flip(0)[:, None].expand(-1, 2)
        weights = {
            "attn.relative_position_bias_table": table,
            "attn.qkv.weight": attention.branch.to_qkv.weight.flatten(1),
            "attn.proj.weight": attention.branch.to_out.weight.flatten(1),
            "attn.proj.bias": attention.branch.to_out.bias,
            **{f"norm1.{name}": tensor for name, tensor in attention.norm.named_parameters()},
            **{f"norm2.{name}": tensor for name, tensor in perceptron.norm.named_parameters()},
            **{
                f"mlp.fc{layer}.{name}": tensor
                for layer, place in ((1, 0), (2, 2))
                for name, tensor in perceptron.branch.layers[place].named_parameters()
            },
        }
        missing, unexpected = theirs.load_state_dict(weights, strict=False)
        assert not unexpected and all("mask" in name or "index" in name for name in missing)
        x = torch.randn(2, 64, 16, 16)
        with torch.no_grad():
            expected = theirs(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
            torch.testing.assert_close(perceptron(attention(x)), expected, rtol=1e-4, atol=1e-5)


def test_the_published_sizes() -> None:
    """ViT-Ti, PiT-Ti and Swin-T, with a head for 10 classes and the patches and positions of small pictures."""
    for network, channels, options, millions in (
        ("vit12", 192, {}, 5.4),
        ("pit12", 64, {"patch_size": 4}, 4.6),
        ("swin12", 96, {"patch_size": 4, "attention_window": 7}, 27.5),
    ):
        with torch.device("meta"):
            made = build_classifier({"network": network, "channels": channels, **options}, 10)
        assert sum(p.numel() for p in made.parameters()) / 1e6 == pytest.approx(millions, rel=0.02)


@pytest.mark.parametrize(("window", "reach"), [(1, 0), (3, 1), (5, 2), (8, 8)])
def test_a_patch_attends_to_its_neighbourhood_and_the_class_token(window: int, reach: int) -> None:
    for class_token in (False, True):
        seen = local_mask(8, window, class_token)
        torch.manual_seed(0)
        layer, x = TokenAttention(4, 2, seen), torch.randn(1, 64 + class_token, 4, requires_grad=True)
        (gradient,) = torch.autograd.grad(layer(x)[0, class_token + 8 * 5 + 7].sum(), x)  # of row 5, column 7
        reached = (gradient[0] != 0).any(1)
        rows, columns = torch.arange(8)[:, None], torch.arange(8)[None]
        expected = ((rows - 5).abs() <= reach) & ((columns - 7).abs() <= reach)
        assert torch.equal(reached[int(class_token) :].view(8, 8), expected)
        assert not class_token or (reached[0] and seen[0].all())


@pytest.mark.parametrize(
    ("network", "options", "maps"),
    [
        ("vit6", {"channels": 64, "patch_size": 4}, [(64, 8, 8)] * 13),
        ("vit6", {"channels": 64, "patch_size": 4, "head": "gap"}, [(64, 8, 8)] * 13),
        ("pit6", {"channels": 32, "patch_size": 4}, [(32, 15, 15)] * 5 + [(64, 8, 8)] * 5 + [(128, 4, 4)] * 5),
        ("swin6", {"channels": 32}, [(32, 32, 32)] * 5 + [(64, 16, 16)] * 5 + [(128, 8, 8)] * 6),
    ],
)
def test_every_part_before_the_head_gives_a_map(network: str, options: dict[str, Any], maps: list[Any]) -> None:
    made = built(network, **options)
    taps = StageFeatures(made, list(named_stages(made)))
    with torch.no_grad():
        made(random_input(32))
    assert taps.stages[:3] == ("stem", "attention1", "mlp1")
    assert [tuple(features.shape[1:]) for features in taps.take()] == maps


def test_dropout_follows_every_branch_and_what_is_no_matrix_is_not_decayed() -> None:
    network = built("vit6", channels=64, dropout=0.1)
    assert [m.dropout.rate for m in network if isinstance(m, ResidualUnit)] == [0.1] * 12
    decayed, plain = (group["params"] for group in make_optimizer(network, TrainConfig()).param_groups)
    own: list[Tensor] = [network.stem.positions, network.stem.class_token]
    assert all(any(one is p for p in plain) for one in own) and all(p.ndim > 1 for p in decayed)
