"""The flags of `steadyseg video`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from app.flags import ComputeOptions
from core.method import MethodOptions


@dataclass(frozen=True)
class VideoOptions:
    """Settings of a segmentation, of one video or of each of `steadyseg batch`."""

    model: str = "camvid-unet-s"
    """Pretrained name, .safetensors file, or .onnx file of `steadyseg export --stateful`."""
    view: Literal["overlay", "uncertainty", "side-by-side", "energy", "set-size"] = "overlay"
    """What the output shows; energy: where no class has a high logit, of a checkpoint with novelty (`calibrate
    --novelty`); set-size: number of classes in each pixel's prediction set, of a calibrated checkpoint."""
    size: int | None = None
    """Height in pixels that frames are resized to for the network; by default the checkpoint's."""
    max_frames: int | None = None
    """Stop after this many frames."""
    method: MethodOptions = field(default_factory=MethodOptions)
    compute: ComputeOptions = field(default_factory=ComputeOptions)


@dataclass(frozen=True)
class VideoJob:
    """One source, how it is segmented, and the files to write."""

    source: Positional[Annotated[str, arg(metavar="SOURCE")]]
    """File, camera index, rtsp:// or http(s):// URL, image folder, or `street[:SEED[:FRAMES]]`."""
    output: Annotated[Path | None, arg(aliases=["-o"])] = None
    """Video file to write (.mp4, .mkv, .mov); by default none."""
    options: VideoOptions = field(default_factory=VideoOptions)
    masks: Path | None = None
    """Folder for label PNGs (palette) and 8-bit uncertainty PNGs."""
    labels: Path | None = None
    """Folder of label PNGs to measure against."""
    report: Path | None = None
    """JSON file for the report."""
    overwrite: bool = False
    """Replace files that exist."""
