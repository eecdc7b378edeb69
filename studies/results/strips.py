"""The qualitative strip of the street: frame, labels, uncertainty and error, each network and mode below the other."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from steadyseg.app.video.render import colour_labels, draw_uncertainty
from steadyseg.core.classes import CAMVID
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.method import MethodOptions, ModeName
from steadyseg.core.segmenter import Segmenter, segment
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.seg.street.drive import Street
from steadyseg.seg.torch_executor import torch_executor

MODELS = ("street-tiny", "camvid-unet-s")
MODES: tuple[ModeName, ...] = ("dnn", "vq-dnn")
PLACE = 12
TITLE_HEIGHT = 18


def write_strip(page: Path) -> None:
    """Rows of single frames and of the mean that follows motion, of each network."""
    rows = []
    for name in MODELS:
        opened = read_segmenter(name)
        for mode in MODES:
            segmenter = Segmenter(torch_executor(opened, MethodOptions(mode).resolve(opened.meta)))
            *_, (frame, maps) = segment(Street(seed=7).frames(PLACE + 1, 0), segmenter)
            rows.append(add_title(strip(frame, maps), f"{name}, {mode}, frame {PLACE}"))
    Image.fromarray(np.concatenate(rows)).quantize(128).save(page / "strip.png", optimize=True)


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
