"""Methods and segmenters from flat settings, as most tests name them."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from steadyseg.core.method import Method, MethodOptions, settings
from steadyseg.core.model.int8 import Corrections, Ranges
from steadyseg.core.segmenter import Segmenter
from steadyseg.runtime.open_model import open_segmenter
from steadyseg.runtime.torch_backend import TorchBackend, torch_backend
from steadyseg.seg.pretrained import read_segmenter

NAMES = {field.name for field in fields(MethodOptions)}


def method(mode: Any = "vq-dnn", temperature: float = 1.0, **settings: Any) -> Method:
    """Of no checkpoint; without motion, as published, unless it is asked for."""
    options = MethodOptions(mode, **({} if not mode.startswith("vq-") else {"motion": False}) | settings)
    return replace(options.resolve(), temperature=temperature)


def fit(mode: Any, temperature: Any = 2.0, **settings_of_method: Any) -> dict[str, Any]:
    """A calibration as a checkpoint records it."""
    return settings(Method(mode, **settings_of_method)) | {"temperature": temperature}


def opened(model: str | Path, **flags: Any) -> Segmenter:
    """What `steadyseg video` would run with these flags."""
    options, rest = split(flags)
    return open_segmenter(str(model), options, **rest)


class TorchSegmenter(Segmenter):
    """A segmenter whose backend is torch's, at hand."""

    def __init__(self, backend: TorchBackend) -> None:
        super().__init__(backend)
        self.by_torch, self.module, self.meta = backend, backend.module, backend.meta

    def at_temperature(self, temperature: float) -> "TorchSegmenter":
        return TorchSegmenter(self.by_torch.at_temperature(temperature))

    def rounded(self, ranges: Ranges, corrections: Corrections) -> "TorchSegmenter":
        return TorchSegmenter(self.by_torch.rounded(ranges, corrections))


def opened_by_torch(model: str | Path, **flags: Any) -> TorchSegmenter:
    """The torch backend in fp32; a temporal mean follows no motion unless it is asked for."""
    if flags.get("mode", "vq-dnn").startswith("vq-"):
        flags = {"motion": False} | flags
    options, rest = split(flags)
    opened = read_segmenter(model)
    return TorchSegmenter(torch_backend(opened, options.resolve(opened.meta), **rest))


def split(flags: dict[str, Any]) -> tuple[MethodOptions, dict[str, Any]]:
    own = {name: value for name, value in flags.items() if name in NAMES}
    return MethodOptions(**own), {name: value for name, value in flags.items() if name not in NAMES}
