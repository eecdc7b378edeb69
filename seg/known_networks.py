"""What networks of known libraries tell about themselves: normalisation, size and class names."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from steadyseg.core.errors import InputError
from steadyseg.seg.networks.imagenet import HALF, IMAGENET_MEAN, IMAGENET_STD

IMAGENET = IMAGENET_MEAN, IMAGENET_STD
HALVES = HALF, HALF
AS_THEY_ARE = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
"""(mean, std) of pixels in 0..1."""


@dataclass(frozen=True)
class KnownNetwork:
    """A network, and what its library says about it; None where it says nothing."""

    network: Callable[..., Any]
    """The part of the given object that maps a picture to an output."""
    mean: Sequence[float] | None = None
    std: Sequence[float] | None = None
    size: int | tuple[int, int] | None = None
    """Height of the pictures, or (height, width)."""
    classes: tuple[str, ...] | None = None
    origin: str = ""
    """Where mean and std are from."""


class InBgr(nn.Module):
    """A network of blue, green and red."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, image: Tensor) -> Any:
        return self.network(image.flip(1))


def look_up(network: Callable[..., Any]) -> KnownNetwork:
    """Returns what the library of a network says about it: ultralytics, transformers, torchvision, timm or SMP."""
    modules = {part.__module__ for part in type(network).__mro__}
    libraries = {name.split(".")[0] for name in modules}
    if "ultralytics" in libraries:
        return _of_ultralytics(network, "ultralytics.engine.model" in modules)
    if "transformers" in libraries:
        return _of_transformers(network)
    if "torchvision" in libraries:
        from torchvision.models.segmentation import LRASPP_MobileNet_V3_Large_Weights as Weights

        return KnownNetwork(network, *IMAGENET, None, tuple(Weights.DEFAULT.meta["categories"]), "torchvision's")
    parts = network.modules() if hasattr(network, "modules") else ()
    configs = (getattr(part, "pretrained_cfg", None) for part in parts)
    if of_timm := next((one for one in configs if isinstance(one, dict) and "mean" in one), None):
        return KnownNetwork(network, of_timm["mean"], of_timm["std"], origin="its timm encoder's")
    if "segmentation_models_pytorch" in libraries:
        values = HALVES if "ception" in str(getattr(network, "name", "")) else IMAGENET
        return KnownNetwork(network, *values, origin="SMP's encoders'")
    return KnownNetwork(network)


def _of_ultralytics(network: Any, is_shell: bool) -> KnownNetwork:
    """`is_shell`: the object is `YOLO`, around the network."""
    inner = network.model if is_shell else network
    if is_shell and network.task != "semantic":
        raise InputError(
            f"a YOLO network of the task {network.task}, expected semantic: the networks whose names end in -sem"
        )
    return KnownNetwork(inner, *AS_THEY_ARE, None, tuple(map(str, dict(inner.names).values())), "ultralytics'")


def _of_transformers(network: Any) -> KnownNetwork:
    """Reads the image processor: a pipeline's own, else from the model's folder, else the default of its kind."""
    processor, origin = getattr(network, "image_processor", None), "its image processor's"
    model = network if processor is None else network.model
    if processor is None:
        from transformers import AutoImageProcessor
        from transformers.models.auto.image_processing_auto import IMAGE_PROCESSOR_MAPPING

        try:
            processor = AutoImageProcessor.from_pretrained(model.name_or_path or ".", local_files_only=True)
        except (OSError, ValueError):
            kinds = IMAGE_PROCESSOR_MAPPING.get(type(model.config), ())
            kinds = kinds.values() if isinstance(kinds, dict) else kinds
            kind = next(filter(None, kinds), None)
            if kind is None:
                return KnownNetwork(model)
            processor, origin = kind(), f"{kind.__name__}'s default"
    normalises = getattr(processor, "do_normalize", False)
    mean, std = (processor.image_mean, processor.image_std) if normalises else AS_THEY_ARE
    given = processor.size
    sizes = given if isinstance(given, dict) else vars(given)
    side = getattr(model.config, "image_size", None)
    square = (side, side) if isinstance(side, int) else sizes.get("shortest_edge")
    size = (sizes["height"], sizes["width"]) if sizes.get("height") and sizes.get("width") else square
    names = tuple(str(model.config.id2label[number]) for number in sorted(model.config.id2label))
    called = InBgr(model) if getattr(processor, "do_flip_channel_order", False) else model
    return KnownNetwork(called, mean, std, size, None if names[:1] == ("LABEL_0",) else names, origin)
