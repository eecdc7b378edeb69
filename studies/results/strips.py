"""Qualitative strips: frame, labels, uncertainty and error of a few frames, each network and mode below the other.

Those of CamVid go to the ignored folder out/ (its pictures are not ours to publish); the committed one shows the
street.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from steadyseg.app.video.render import colour_labels, draw_uncertainty
from steadyseg.core.classes import CAMVID
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.method import MethodOptions, ModeName
from steadyseg.core.segmenter import Segmenter, segment
from steadyseg.seg.data.camvid import open_split
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.seg.street.drive import Street
from steadyseg.seg.torch_executor import torch_executor
from steadyseg.studies.results.matrix import COMPARED

CAMVID_PLACES = (20, 60, 100)
"""Positions in the val stream."""
STREET_PLACE = 12
MEMORY = 16
"""Frames before it that a shown frame's mean has seen."""
TITLE_HEIGHT = 18


def write_strips(data: Path, page: Path, private: Path) -> dict[str, str]:
    """{title: file name in docs} of the committed strip; those of CamVid are written to `private`."""
    private.mkdir(parents=True, exist_ok=True)
    for network in COMPARED:
        target = private / f"strip-{network.name}.png"
        if network.file.exists() and not (target.exists() and target.stat().st_mtime > network.file.stat().st_mtime):
            found = strips(network.file, lambda: open_split(data, "val").frames(), CAMVID_PLACES)
            picture = np.concatenate([row for rows in found for row in rows])
            Image.fromarray(picture).save(target)
    rows = []
    for model in ("street-tiny", "camvid-unet-s"):
        for row in next(strips(model, lambda: Street(seed=7).frames(STREET_PLACE + 1, 0), (STREET_PLACE,))):
            rows.append(row)
    name = "strip.png"
    Image.fromarray(np.concatenate(rows)).quantize(128).save(page / name, optimize=True)
    return {"The street, by a network trained on it alone and by one trained on it and then on CamVid": name}


def strips(
    model: str | Path, frames: Callable[[], Iterable[Frame]], places: tuple[int, ...]
) -> Iterator[list[np.ndarray]]:
    """For each place the rows of single frames and of the mean that follows motion: (h, 4 w, 3) uint8 RGB."""
    modes: tuple[ModeName, ...] = ("dnn", "vq-dnn")
    opened = read_segmenter(model)
    methods = {mode: MethodOptions(mode).resolve(opened.meta) for mode in modes}
    segmenters = {mode: Segmenter(torch_executor(opened, method)) for mode, method in methods.items()}
    for place in places:
        rows = []
        for mode, segmenter in segmenters.items():
            segmenter.reset()
            *_, (frame, maps) = segment(islice(frames(), max(0, place - MEMORY), place + 1), segmenter)
            rows.append(add_title(strip(frame, maps), f"{Path(model).stem}, {mode}, frame {place}"))
        yield rows


def strip(frame: Frame, maps: Maps) -> np.ndarray:
    """Frame, predicted labels, uncertainty, and what is wrong (white), void black."""
    assert frame.label is not None
    wrong = (maps.label != frame.label) & (frame.label != CAMVID.void)
    error = np.repeat((wrong * np.uint8(255))[..., None], 3, axis=2)
    return np.concatenate(
        [frame.image, colour_labels(maps.label, CAMVID.palette()), draw_uncertainty(maps.entropy), error], axis=1
    )


def add_title(picture: np.ndarray, text: str) -> np.ndarray:
    """The picture with a line of text above it."""
    line = Image.new("RGB", (picture.shape[1], TITLE_HEIGHT), (24, 24, 24))
    ImageDraw.Draw(line).text(
        (6, 3), f"{text}: picture, labels, uncertainty (black is sure), errors (white)", (235, 235, 235)
    )
    return np.concatenate([np.asarray(line), picture])
