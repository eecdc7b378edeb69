"""The flags of `steadyseg export`, `steadyseg verify` and `steadyseg wrap`."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from steadyseg.core.errors import InputError
from steadyseg.core.method import MethodOptions


@dataclass(frozen=True)
class ExportJob:
    """The model of an export and its output."""

    model: Positional[Annotated[str, arg(metavar="MODEL")]]
    """Pretrained name or .safetensors file of a segmentation network or an image classifier."""
    output: Annotated[Path, arg(aliases=["-o"])]
    """File (.onnx) to write, or the folder of another target."""
    target: Literal["onnx", "web"] = "onnx"
    """`onnx`: one graph file. `web`: a folder with a page that runs the network in the visitor's browser, in every mode
    or only in --mode."""
    stateful: bool = False
    """Export the whole computation: frame and state in, label and uncertainty maps and state out. Without it, the
    network alone: normalised images in, logits out. Target web is always stateful; a classifier takes
    pictures and returns probabilities and uncertainty."""
    size: str | None = None
    """Height of the network's input in pixels, by default the checkpoint's. HEIGHTxWIDTH for a video of another aspect
    than the checkpoint's (360x640 for 16:9)."""
    precision: Literal["auto", "fp32", "fp16", "int8", "bf16"] = "auto"
    """Number format of the network; auto: fp32. No file is in bf16 or int8: OpenVINO computes a graph file in bf16, and
    a checkpoint in both."""
    with_proof: bool = False
    """Put a proof (0.6 MB) into a stateful file: a few frames and their expected values. With it `steadyseg verify`
    checks if a device computes the file correctly."""
    overwrite: bool = False
    """Replace an output that exists."""
    method: MethodOptions = field(default_factory=MethodOptions)
    """The computation of a stateful graph, by default the same as in `video`: the temporal mean follows the motion,
    which takes two more inputs. With --motion off, the default of target web, these are absent and tau is 1.25. For a
    classifier: --mode dnn or bnn, --samples and --calibrated."""

    @property
    def shape(self) -> tuple[int | None, int | None]:
        """(height, width) of `size`, None for a side that `size` leaves open; InputError for anything else."""
        if self.size is None:
            return None, None
        if (match := re.fullmatch(r"(\d{1,5})(?:x(\d{1,5}))?", self.size, re.ASCII)) is None:
            raise InputError(f"--size must be HEIGHT or HEIGHTxWIDTH in pixels, such as 360x640, got {self.size!r}")
        return int(match[1]), int(match[2]) if match[2] else None


@dataclass(frozen=True)
class VerifyJob:
    """A graph file that carries a proof, and the device to run it on."""

    file: Positional[Annotated[Path, arg(metavar="FILE.onnx")]]
    """File of `steadyseg export --stateful --with-proof`."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device of ONNX Runtime; auto: cuda if there is a GPU. Without --reduced, CUDA computes in fp32, no TF32."""
    runtime: Literal["onnxruntime", "openvino"] | None = None
    """Library that runs the whole file; openvino: on the CPU. By default onnxruntime where it is installed."""
    reduced: bool = False
    """Let the device compute in TF32, bf16 or fp16, and hold it to the wider bounds of this arithmetic."""


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
    0). Omit mean and std for a uint8 network, which normalises its pictures itself."""
    std: tuple[float, ...] = ()
    """RGB standard deviation by which the network's pictures are divided (ImageNet: 0.229 0.224 0.225; none: 1 1 1)."""
    bgr: bool = False
    """The network takes BGR pictures, as OpenCV and Caffe give them; the new file turns its RGB frames. --mean and
    --std stay in the order red, green, blue."""
    classes: Path | None = None
    """JSON file with the names of the classes: a list, or {"names": [...], "colors": [[r, g, b], ...], "void": id}; or
    camvid. By default class 0, class 1, ..."""
    logits: str = ""
    """Name of the output to take, if the file has several that can be the logits; by default `out` or `logits`, then
    the one that is not auxiliary by its name or its smaller size."""
    size: str | None = None
    """HEIGHTxWIDTH of the network's input in pixels, for a network whose size is free."""
    temperature: float | None = None
    """Divide the logits by this temperature, fitted elsewhere for the written method; by default 1. `steadyseg
    calibrate` fits it."""
    tau: float | None = None
    """Decay time of the temporal mean in source frames (default 1.25)."""
    motion: bool | None = None
    """Let the temporal mean follow the motion between frames; the file then takes the motion as inputs. auto: on, and
    off for target web."""
    target: Literal["onnx", "web"] = "onnx"
    """onnx: one file; web: a folder with a page that runs it in the visitor's browser."""
    with_proof: bool = False
    """Put a proof into the file, as `steadyseg export --with-proof` does."""
    overwrite: bool = False
    """Replace an output that exists."""
