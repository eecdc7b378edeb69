"""The flags of `steadyseg video`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import OmitArgPrefixes, Positional, arg

from core.method import MethodOptions


@dataclass(frozen=True)
class VideoOptions:
    """How a video is segmented: alike for one and for thousands of `steadyseg batch`."""

    model: str = "camvid-unet-s"
    """Pretrained name, .safetensors file, or .onnx file of `steadyseg export --stateful`."""
    method: OmitArgPrefixes[MethodOptions] = field(default_factory=MethodOptions)
    size: int | None = None
    """Height in pixels that frames are resized to for the network; the checkpoint's without it."""
    view: Literal["overlay", "uncertainty", "side-by-side", "novel", "set-size"] = "overlay"
    """What the output shows; novel: regions unlike the network's own world, where the checkpoint knows it; set-size:
    how many classes a pixel may be, for a calibrated checkpoint."""
    executor: Literal["auto", "torch", "openvino", "onnxruntime"] = "auto"
    """What computes; auto takes the fastest that is there and says which and why."""
    precision: Literal["auto", "fp32", "bf16", "int8"] = "auto"
    """auto takes bf16 where the processor computes in it, else int8 where the checkpoint shows that it loses little."""
    device: str = "auto"
    """auto, cpu or cuda (tensorrt for .onnx files: unverified)."""
    seed: int = 0
    """Seed of the dropout masks."""
    max_frames: int | None = None
    """Stop after this many frames."""


@dataclass(frozen=True)
class VideoJob:
    """What is segmented, how, and what is written."""

    source: Positional[str]
    """File, camera index, rtsp:// or http(s):// URL, image folder, or `street[:SEED[:FRAMES]]`."""
    output: Annotated[Path | None, arg(aliases=["-o"])] = None
    """Video file to write (.mp4, .mkv, .mov); none without it."""
    overwrite: bool = False
    """Replace an output that exists."""
    options: OmitArgPrefixes[VideoOptions] = field(default_factory=VideoOptions)
    masks: Path | None = None
    """Folder for label PNGs (palette) and 8-bit uncertainty PNGs."""
    labels: Path | None = None
    """Folder of label PNGs to measure against."""
    report: Path | None = None
    """JSON file for the report."""
