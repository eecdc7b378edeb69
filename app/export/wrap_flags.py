"""The flags of `steadyseg wrap`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg


@dataclass(frozen=True)
class WrapJob:
    """Another program's network, what its training did to pictures, and the output."""

    network: Positional[Annotated[Path, arg(metavar="NETWORK.onnx")]]
    """ONNX file of any segmentation network: one picture in (NCHW or NHWC), logits or probabilities out, or labels that
    the file computes from them. One channel out is an alpha mask of two classes."""
    output: Annotated[Path, arg(aliases=["-o"])]
    """File (.onnx) to write, or the folder of another target."""
    mean: tuple[float, ...] = ()
    """RGB mean for normalising the network's pictures, of pixels in 0..1 (ImageNet: 0.485 0.456 0.406; none: 0 0
    0)."""
    std: tuple[float, ...] = ()
    """RGB standard deviation for normalising the network's pictures (ImageNet: 0.229 0.224 0.225; none: 1 1 1)."""
    classes: Path | None = None
    """JSON file with the names of the classes: a list, or {"names": [...], "colors": [[r, g, b], ...], "void": id}; or
    camvid. By default class 0, class 1, ..."""
    logits: str = ""
    """Name of the output to take, if the file has several; by default the one whose classes differ most."""
    size: str | None = None
    """HEIGHTxWIDTH of the network's input in pixels, for a network whose size is free."""
    temperature: float | None = None
    """Divide the logits by this temperature, fitted elsewhere for the written method; by default 1. `steadyseg
    calibrate` fits it."""
    tau: float | None = None
    """Decay time of the temporal mean in source frames (default 8, and 1.25 without motion)."""
    motion: bool | None = None
    """Let the temporal mean follow the motion between frames; the file then takes the motion as inputs. auto: on, and
    off for target web."""
    target: Literal["onnx", "web"] = "onnx"
    """onnx: one file; web: a folder with a page that runs it in the visitor's browser."""
    with_proof: bool = False
    """Put a proof into the file, as `steadyseg export --with-proof` does."""
    overwrite: bool = False
    """Replace an output that exists."""
