"""segmentation-models-pytorch networks as MC-dropout networks: dropout after every decoder block, the encoder shared."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from core.dropout import Dropout
from core.errors import InputError
from seg.options import SmpOptions


class SmpNetwork(nn.Module):
    """(B, 3, h, w) -> (B, K, h, w) logits. `prefix` is the encoder, `suffix` decoder and head."""

    def __init__(self, num_classes: int, options: SmpOptions = SmpOptions()) -> None:  # noqa: B008 (frozen)
        super().__init__()
        self.options = options
        self.model = _create(num_classes, options)
        if options.decoder_dropout != 0:
            insert_decoder_dropout(self.model, options.decoder_dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.suffix(self.prefix(x))

    def prefix(self, x: Tensor) -> Any:
        """Pads to the encoder's stride (right and below) and runs the encoder."""
        height, width = x.shape[-2:]
        stride = self.model.encoder.output_stride
        padded = F.pad(x, (0, -width % stride, 0, -height % stride))
        return height, width, self.model.encoder(padded)

    def suffix(self, shared: Any) -> Tensor:
        """Decoder with dropout and head; the padding is cropped away."""
        height, width, features = shared
        return self.model.segmentation_head(self.model.decoder(features))[..., :height, :width]


def insert_decoder_dropout(model: Any, rate: float) -> None:
    """Puts a `Dropout` after each block of `model.decoder.blocks`, or after the whole decoder where it has no blocks."""
    blocks = getattr(model.decoder, "blocks", None)
    if isinstance(blocks, nn.ModuleList):
        for block in blocks:
            _append_dropout(block, rate)
    else:
        _append_dropout(model.decoder, rate)


def _append_dropout(block: nn.Module, rate: float) -> None:
    """The dropout becomes a child of the block, so that switches and copies of the network reach it."""
    block.add_module("mc_dropout", Dropout(rate))
    block.register_forward_hook(_call_dropout)


def _call_dropout(block: nn.Module, inputs: Any, output: Tensor) -> Tensor:
    return block.get_submodule("mc_dropout")(output)


def _create(num_classes: int, options: SmpOptions) -> Any:
    import segmentation_models_pytorch as smp

    try:
        return smp.create_model(
            options.architecture, options.encoder, encoder_weights=options.encoder_weights, classes=num_classes
        )
    except OSError as error:  # every download error of the hub and of urllib
        raise InputError(
            f"the {options.encoder_weights} weights of {options.encoder} cannot be fetched ({_first_line(error)}); go online "
            "or train from random weights with --encoder-weights None"
        ) from error
    except (KeyError, RuntimeError, ValueError) as error:  # after OSError: the hub's errors are ValueErrors too
        raise InputError(
            f"{_first_line(error)}; see segmentation-models-pytorch for architectures and encoders"
        ) from error


def _first_line(error: BaseException) -> str:
    return (str(error.args[0]) if error.args else type(error).__name__).strip().splitlines()[0]
