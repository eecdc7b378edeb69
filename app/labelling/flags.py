"""The flags of `steadyseg pick` and `steadyseg suspects`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from steadyseg.seg.data.label_writer import Tool


@dataclass(frozen=True)
class PickJob:
    """Videos without labels, and the frames to label next."""

    sources: Positional[Annotated[tuple[str, ...], arg(metavar="VIDEO")]]
    """Video files, image folders or video addresses."""
    output: Annotated[Path, arg(aliases=["-o"])]
    """Folder to write: images/, uncertainty/ with PNGs (255: as unsure as possible), the network's labels to
    correct, frames.csv and contact-sheet.jpg."""
    count: Annotated[int, arg(aliases=["-n"])] = 40
    """Number of frames."""
    model: str = "camvid-realtime"
    """Pretrained name, .safetensors file or .onnx file of `wrap` or `export --stateful`; best a network trained on the
    labels so far."""
    data: Path | None = None
    """Data folder with the frames that are labelled already: the chosen frames are unlike its train images."""
    labels: Tool = "coco"
    """Label tool whose format the labels have."""
    overwrite: bool = False
    """Replace a folder that exists."""


@dataclass(frozen=True)
class SuspectsJob:
    """Labelled pictures, and the labels among them that are probably wrong."""

    data: Positional[Annotated[Path, arg(metavar="DATA")]]
    """Folder with SPLIT/ and SPLITannot/."""
    model: str
    """Pretrained name, .safetensors file, or .onnx file of `wrap` or `export --stateful`, with these classes. Best is a
    network not trained on these pictures, as networks learn wrong labels too."""
    output: Annotated[Path, arg(aliases=["-o"])]
    """Folder to write: suspects.csv and contact-sheet.jpg."""
    split: Literal["train", "val", "test", "held-out"] = "train"
    """Split of the data; held-out: the images of train that the training held out, by the network's record."""
    count: Annotated[int, arg(aliases=["-n"])] = 100
    """Number of suspect regions to list, the most suspect first."""
    overwrite: bool = False
    """Replace a folder that exists."""
