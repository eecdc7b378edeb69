"""The flags of `steadyseg bench`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from steadyseg.core.options import Rare
from steadyseg.runtime.options import ComputeOptions, Settings


@dataclass(frozen=True)
class BenchJob:
    """A network, the rows that are timed, and the file for the result."""

    model: Positional[Annotated[str, arg(metavar="MODEL")]]
    """Pretrained name, .safetensors file, or .onnx file of `steadyseg export --stateful`."""
    report: Path | None = None
    """JSON file for the figures."""
    overwrite: bool = False
    """Replace a report that exists."""
    only: tuple[str, ...] = ()
    """Time only these rows; the table of a whole run names them."""
    settings: Settings = ()
    """Rarely needed settings, as NAME=VALUE; `--config list` prints them."""
    row_seconds: Rare[float] = 4.0
    """Seconds that each row is timed; a row of long calls gets five calls in any case."""
    source: Path | None = None
    """Video file for the rows from a file; its frames' shape decides the network's size. By default a clip of the
    synthetic street of the network's size."""
    size: int | None = None
    """Height in pixels that the network works at; the checkpoint's without it."""
    compute: ComputeOptions = field(default_factory=ComputeOptions)
