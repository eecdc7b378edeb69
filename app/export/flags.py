"""The flags of `steadyseg export`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from core.method import MethodOptions


@dataclass(frozen=True)
class ExportJob:
    """The model of an export and its output."""

    model: Positional[Annotated[str, arg(metavar="MODEL")]]
    """Pretrained name or .safetensors file of a segmentation network or an image classifier."""
    output: Annotated[Path, arg(aliases=["-o"])]
    """File (.onnx) to write, or the folder of another target."""
    target: Literal["onnx", "web", "triton"] = "onnx"
    """onnx: one graph file; web: a folder with a page that runs the network in the visitor's browser, in every mode or
    in that of --mode; triton: the folder of a model in a repository of Triton Inference Server (-o REPOSITORY/NAME)."""
    stateful: bool = False
    """Export the whole computation: frame and state in, label and uncertainty maps and state out. Without it, the
    network alone: normalised images in, logits out. Targets web and triton are always stateful; a classifier takes
    pictures and returns probabilities and uncertainty."""
    size: int | None = None
    """Height in pixels at which the network works; by default the checkpoint's."""
    width: int | None = None
    """Width in pixels at which the network works: give that of your video's aspect (640 for 16:9 at 360); by default
    the checkpoint's aspect."""
    precision: Literal["auto", "fp32", "fp16", "int8", "bf16"] = "auto"
    """Number format of the network; auto: fp32. int8 needs --calibration-data; bf16 is chosen where a graph runs."""
    calibration_data: Path | None = None
    """Images that int8 is fitted on: a folder with train/, an image folder or a video. With labelled test/ images the
    loss of accuracy is measured, and a large one refused."""
    proof_frames: str = "street"
    """Video, image folder or `street`: the frames of the proof that the graph computes what torch computes."""
    runtime: Path | None = None
    """The package onnxruntime-web (.tgz, from `npm pack`) for --target web; by default it is fetched once."""
    overwrite: bool = False
    """Replace an output that exists."""
    method: MethodOptions = field(default_factory=MethodOptions)
    """The computation of a stateful graph. By default the temporal mean follows no motion and tau is 1.25; with
    --motion on tau is 8, and the graph has two more inputs with the motion between frames. For a classifier: --mode dnn
    or bnn, --samples, --temperature and --calibrated."""
