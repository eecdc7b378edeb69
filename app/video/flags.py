"""The flags of `steadyseg video`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from steadyseg.core.errors import InputError
from steadyseg.core.method import MethodOptions
from steadyseg.core.options import Every, Rare
from steadyseg.runtime.options import DEFAULT_MODEL, ComputeOptions, Settings

ViewName = Literal["overlay", "side-by-side", "uncertainty", "confidence", "disagreement", "energy", "set-size"]


@dataclass(frozen=True)
class VideoOptions:
    """Settings of a segmentation, for one video or for every video of `steadyseg batch`."""

    model: str = DEFAULT_MODEL
    """Pretrained name, .safetensors file, or .onnx file of `steadyseg export --stateful` or `wrap`."""
    view: ViewName = "overlay"
    """The view of the output, with a legend below. `energy`: bright where no class has a high logit (needs `calibrate
    --familiarity`). `set-size`: number of classes in each pixel's prediction set (needs a calibrated checkpoint)."""
    size: int | None = None
    """Height in pixels of the frames that the network gets; by default the checkpoint's."""
    every: Annotated[Every | None, arg(metavar="N|auto|live")] = None
    """Run the network on every N-th frame and warp its maps along the motion to the others. `auto`: where the picture
    asks for it, at most 4 frames apart. `live`: in a thread of its own, so that no frame waits (default of cameras and
    live streams; files have the network on every frame)."""
    max_frames: int | None = None
    """Stop after this many frames."""
    legend: Rare[bool] = True
    """Add a legend below the pictures: classes that occur with their colours, or the scale of a map."""
    settings: Settings = ()
    """Settings without a flag, NAME=VALUE or files of them, such as legend=false; `--config list` prints all."""
    method: MethodOptions = field(default_factory=MethodOptions)
    compute: ComputeOptions = field(default_factory=ComputeOptions)


def check_options(options: VideoOptions) -> None:
    """Raises InputError for numbers out of range."""
    if options.max_frames is not None and options.max_frames < 1:
        raise InputError(f"--max-frames must be 1 or more, got {options.max_frames}")


@dataclass(frozen=True)
class VideoJob:
    """One source, its segmentation, and the files to write."""

    source: Positional[Annotated[str, arg(metavar="SOURCE")]]
    """File, camera (0, or 0:1280x720:30:MJPG to ask for width x height, rate and format), URL (rtsp, rtmp,
    http(s), udp), image folder, or `street[:SEED[:FRAMES]]`."""
    output: Annotated[str | None, arg(aliases=["-o"], metavar="FILE|URL")] = None
    """Video file to write (.mp4, .mkv, .mov), or address of a live stream (rtsp://, rtmp://, udp://); by default
    none."""
    options: VideoOptions = field(default_factory=VideoOptions)
    masks: Path | None = None
    """Folder for label PNGs (palette) and 8-bit uncertainty PNGs."""
    report: Path | None = None
    """JSON file for the report. `-`: a line of JSON a second on stdout, and the report as the last line."""
    overwrite: bool = False
    """Replace files that exist."""
