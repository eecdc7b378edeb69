"""The flags of `steadyseg bench`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional


@dataclass(frozen=True)
class BenchJob:
    """What is timed, and for how long."""

    model: Positional[str]
    """Pretrained name, .safetensors file, or .onnx file of `steadyseg export --stateful`."""
    json: Path | None = None
    """File for the result."""
    rows: tuple[str, ...] = ()
    """Only these rows; the table of a whole run names them."""
    executor: Literal["auto", "torch", "openvino"] = "auto"
    """What computes; auto takes the fastest that is there and says which and why."""
    precision: Literal["auto", "fp32", "bf16", "int8"] = "auto"
    """auto takes bf16 where the processor computes in it, else int8 where the checkpoint shows that it loses little."""
    size: int | None = None
    """Height in pixels that the network works at; the checkpoint's without it."""
    source: Path | None = None
    """Video file for the rows from a file; its frames' shape decides the network's size. A clip of the procedural
    street of the network's size is written without it."""
    soak: int | None = None
    """First run this many frames in a row and see whether memory grows."""
    seconds: float = 4.0
    """Time for each row; long ones get five calls in any case."""
