"""The flags of `steadyseg verify`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg


@dataclass(frozen=True)
class VerifyJob:
    """A graph file that carries a proof, and the device to run it on."""

    file: Positional[Annotated[Path, arg(metavar="FILE.onnx")]]
    """File of `steadyseg export --stateful --with-proof`."""
    device: Literal["auto", "cpu", "cuda", "tensorrt"] = "auto"
    """Device of ONNX Runtime; auto: cuda where there is one. Without --reduced, CUDA computes in fp32, no TF32."""
    runtime: Literal["onnxruntime", "openvino"] = "onnxruntime"
    """Library that runs the whole file; openvino: on the CPU."""
    reduced: bool = False
    """Let the device compute in TF32, bf16 or fp16 where it would, and hold it to the wider bounds of such
    arithmetic."""
