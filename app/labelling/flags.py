"""The flags of `steadyseg pick`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg


@dataclass(frozen=True)
class PickJob:
    """Videos without labels, and the frames of them to label next."""

    sources: Positional[Annotated[tuple[str, ...], arg(metavar="VIDEO")]]
    """Video files, image folders or video addresses."""
    output: Annotated[Path, arg(aliases=["-o"])]
    """Folder to write: images/, uncertainty/ with PNGs (255: as unsure as possible), coco.json with the network's
    labels to correct, frames.csv and contact-sheet.jpg."""
    count: Annotated[int, arg(aliases=["-n"])] = 40
    """Number of frames."""
    model: str = "camvid-realtime"
    """Pretrained name or .safetensors file; the one that was trained on the labels so far is best."""
    data: Path | None = None
    """Data folder with the frames that are labelled already: those chosen are unlike its train images."""
    overwrite: bool = False
    """Replace a folder that exists."""
