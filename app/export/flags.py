"""The flags of `steadyseg export`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import OmitArgPrefixes, Positional, arg

from core.method import MethodOptions


@dataclass(frozen=True)
class ExportJob:
    """What is written, and what it is proven on."""

    model: Positional[str]
    """Pretrained name or .safetensors file. Of an image classifier: uint8 RGB pictures of its size in, any number at
    once; probabilities, entropy and disagreement (shares of ln K) out; of the method --mode, --samples, --temperature
    and
    --calibrated are for it."""
    output: Annotated[Path | None, arg(aliases=["-o"])] = None
    """File to write (.onnx)."""
    web: Path | None = None
    """Folder to write instead: a page that runs the network in the visitor's browser, with a stateful file for each
    method (--mode: for this one alone). Any web host serves it."""
    runtime: Path | None = None
    """onnxruntime-web's package for --web, from `npm pack` (.tgz); fetched once and kept without it."""
    stateful: bool = False
    """The whole computation: raw frame and state in, label and uncertainty maps and state out. Without it the network
    alone: normalised images in, logits out."""
    method: OmitArgPrefixes[MethodOptions] = field(default_factory=MethodOptions)
    """What the stateful file computes: by default without motion at tau 1.25; with --motion on tau is 8, and the file
    has two more inputs, which tell the motion between frames. Of a classifier dnn or bnn."""
    fixed_frames: bool = False
    """The stateful file takes frames of the network's own size and no others: it resizes nothing."""
    size: int | None = None
    """Height in pixels that frames are resized to for the network; the checkpoint's without it."""
    width: int | None = None
    """Width in pixels of the network, fixed in the file: give that of your video's aspect (640 for 16:9 at 360); the
    checkpoint's without it."""
    precision: Literal["fp32", "fp16", "int8", "bf16"] = "fp32"
    """Number format of the network; int8 needs --calibration-data, bf16 is chosen where a file runs."""
    calibration_data: Path | None = None
    """Folder with train/, or of images: what int8 is fitted on; labelled test/ images measure the loss."""
    proof_frames: str = "street"
    """Video, image folder or `street` that the proof runs on."""
    triton: Path | None = None
    """Also write a model repository for Triton Inference Server into this folder; for --stateful files with a
    memory."""
    overwrite: bool = False
    """Replace a file, or a folder of --web, that exists."""
