"""Methods and segmenters from flat settings, as most tests name them."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from app.open_model import open_segmenter
from core.method import Method, MethodOptions
from core.segmenter import Segmenter
from seg.torch_executor import TorchSegmenter, open_torch_segmenter

NAMES = {field.name for field in fields(MethodOptions)}


def method(mode: Any = "vq-dnn", **settings: Any) -> Method:
    """Of no checkpoint; without motion, as published, unless it is asked for."""
    return MethodOptions(mode, **({} if not mode.startswith("vq-") else {"motion": False}) | settings).resolve()


def opened(model: str | Path, **flags: Any) -> Segmenter:
    """What `steadyseg video` would run with these flags."""
    options, rest = split(flags)
    return open_segmenter(str(model), options, **rest)


def opened_by_torch(model: str | Path, **flags: Any) -> TorchSegmenter:
    """The torch executor in fp32; a temporal mean follows no motion unless it is asked for."""
    if flags.get("mode", "vq-dnn").startswith("vq-"):
        flags = {"motion": False} | flags
    options, rest = split(flags)
    return open_torch_segmenter(model, options, **rest)


def split(flags: dict[str, Any]) -> tuple[MethodOptions, dict[str, Any]]:
    own = {name: value for name, value in flags.items() if name in NAMES}
    return MethodOptions(**own), {name: value for name, value in flags.items() if name not in NAMES}
