"""Flags that several commands have, each group with its heading in `--help`."""

from dataclasses import dataclass
from typing import Annotated, Literal

from tyro.conf import arg

DEFAULT_MODEL = "road-realtime"
"""The network of `demo`, `video` and `batch`, which keeps up with a camera on two cores."""
BackendName = Literal["auto", "torch", "openvino", "onnxruntime"]
PrecisionName = Literal["auto", "fp32", "bf16", "fp16", "int8"]
Settings = Annotated[tuple[str, ...], arg(name="config", metavar="FILE|NAME=VALUE ...")]
"""The words of `--config` (app/settings.py)."""


@dataclass(frozen=True)
class ComputeOptions:
    """Library, number format and device of the network."""

    backend: BackendName = "auto"
    """Library that runs the network; auto takes the fastest installed library and reports which and why."""
    precision: PrecisionName = "auto"
    """Number format of the network. `auto` on a GPU: the format of its tensor cores, bf16 or fp16. `auto` on a CPU: the
    faster of bf16 (if the processor has it) and int8 (if the checkpoint shows a small loss), else fp32."""
    device: str = "auto"
    """auto, cpu or cuda; auto: cuda if there is a GPU."""
