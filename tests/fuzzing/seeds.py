"""Undamaged small files of every kind, made by the product where it writes such files."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import torch
from made.foreign import foreign_onnx
from PIL import Image

from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.options import ClassifierOptions
from steadyseg.core.classes import CAMVID, ClassList
from steadyseg.core.model.checkpoint import CheckpointMeta, save_checkpoint
from steadyseg.seg.networks.build import build_network
from steadyseg.seg.options import SmpOptions, UNetOptions
from steadyseg.seg.pretrained import find_checkpoint
from steadyseg.street.drive import Street

HEIGHT, WIDTH = 48, 64
SIZE = ("--size", "96")
EXPORTS = {
    "dnn": ("street-tiny", "--stateful", "--mode", "dnn", *SIZE),
    "vq-dnn": ("street-tiny", "--stateful", "--motion", "off", *SIZE),
    "logits": ("street-tiny", "--mode", "dnn", *SIZE),
    "classifier": ("CLASSIFIER", "--mode", "dnn"),
}
VIDEOS = {
    ".mp4": "libx264",
    ".mkv": "libx265",
    ".mov": "mjpeg",
    ".avi": "mpeg4",
    ".webm": "libvpx-vp9",
    ".ts": "mpeg2video",
    ".gif": "gif",
}
PIXELS = {"mjpeg": "yuvj420p", "gif": "rgb8"}
QUIET = {"libx265": {"x265-params": "log-level=none"}}


def checkpoints(folder: Path) -> list[Path]:
    """Checkpoints: street-tiny, and untrained small networks of the other kinds."""
    torch.manual_seed(0)
    meta = CheckpointMeta("unet", {}, CAMVID, 48, 64, (0.4, 0.4, 0.4), (0.3, 0.3, 0.3))
    fit = {"vq-dnn": {"mode": "vq-dnn", "samples": 1, "tau": 8.0, "motion": True, "temperature": 1.2}}
    made = [find_checkpoint("street-tiny")]
    for name, options in (("unet", UNetOptions(channels=2)), ("smp", SmpOptions(encoder="tu-mobilenetv3_small_050"))):
        made.append(folder / f"{name}.safetensors")
        record = replace(meta, architecture=name, options=asdict(options), calibration=fit)
        save_checkpoint(made[-1], build_network(name, options, len(CAMVID)).state_dict(), record)
    classifier = ClassifierOptions(channels=4, dropout=0.3, smoothing=True)
    made.append(folder / "classifier.safetensors")
    animals = ClassList.of_names(("cat", "dog", "eel"))
    record = replace(meta, architecture="classifier", options=asdict(classifier), classes=animals, height=32, width=32)
    save_checkpoint(made[-1], build_classifier(classifier, 3).state_dict(), record)
    return made


def graphs(folder: Path) -> list[Path]:
    """Graph files written by `steadyseg export`, with its proof."""
    made = []
    classifier = checkpoints(folder)[-1]
    for name, (model, *flags) in EXPORTS.items():
        path = folder / f"{name}.onnx"
        model = str(classifier) if model == "CLASSIFIER" else model
        if not path.exists():
            command = [sys.executable, "-m", "steadyseg.app.cli", "export", model, *flags, "-o", str(path)]
            subprocess.run(command, check=True, capture_output=True)  # its threads must not be this process's
        made.append(path)
    return made


def class_files(folder: Path) -> list[Path]:
    """CamVid's classes, the smallest valid list, and two whose ids allow sets of classes."""
    camvid = {"names": CAMVID.names, "colors": CAMVID.colors, "void": 255}
    allows = {"0": ["Road"], "1": ["Building", "Tree"], "5": ["Car", "Road"]}
    records = {"camvid": camvid, "two": {"names": ["a", "b", "c", "d", "e", "f"]}}
    records |= {"sets": camvid | {"allows": allows}, "own": {"allows": allows, "void": 255}}
    for name, record in records.items():
        (folder / f"{name}.json").write_text(json.dumps(record))
    return [folder / f"{name}.json" for name in records]


def images(folder: Path) -> list[Path]:
    """A picture of the street in every format, depth and layout that is opened."""
    picture = Image.fromarray(next(_street(1)))
    exif = Image.Exif()
    exif[0x0112] = 6
    deep = Image.fromarray(np.asarray(picture.convert("L")).astype(np.uint16) * 257)
    kinds: list[tuple[str, Image.Image, dict[str, object]]] = [
        ("rgb.png", picture, {"exif": exif}),
        ("palette.png", picture.quantize(11), {}),
        ("deep.png", deep, {}),
        ("rgba.png", picture.convert("RGBA"), {}),
        ("plain.jpg", picture, {"exif": exif}),
        ("progressive.jpg", picture, {"progressive": True}),
        ("cmyk.jpg", picture.convert("CMYK"), {}),
        ("raw.tif", picture, {}),
        ("lzw.tif", picture, {"compression": "tiff_lzw", "exif": exif}),
        ("deep.tif", deep, {}),
        ("jpeg.tif", picture, {"compression": "jpeg"}),
        ("group4.tif", picture.convert("1"), {"compression": "group4"}),
        ("lossy.webp", picture, {"exif": exif}),
        ("whole.webp", picture, {"lossless": True}),
        ("plain.bmp", picture, {}),
        ("palette.bmp", picture.quantize(11), {}),
        ("plain.ppm", picture, {}),
        ("deep.pgm", deep, {}),
    ]
    for name, image, options in kinds:
        image.save(folder / name, **options)  # type: ignore[arg-type]
    return [folder / name for name, *_ in kinds]


def videos(folder: Path) -> list[Path]:
    """Twelve frames of the street in the containers and codecs that people have."""
    made = []
    for suffix, codec in VIDEOS.items():
        made.append(folder / f"street{suffix}")
        with av.open(str(made[-1]), "w") as container:
            stream: Any = container.add_stream(codec, rate=Fraction(25), options=QUIET.get(codec, {}))
            stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, PIXELS.get(codec, "yuv420p")
            for image in _street(12):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(image)))
            container.mux(stream.encode())
    return made


def _street(count: int) -> Iterator[np.ndarray]:
    return (frame.image for frame in Street(seed=1, height=HEIGHT, width=WIDTH).frames(count))


def label_files(folder: Path) -> list[Path]:
    """Label files of two pictures that lie beside them: COCO with polygons and run lengths, CVAT, Label Studio."""
    for name, image in zip("ab", _street(2), strict=True):
        Image.fromarray(image).save(folder / f"{name}.png")
    corners = [4.0, 4.0, 40.0, 6.0, 20.5, 40.0]
    runs = {"size": [HEIGHT, WIDTH], "counts": [100, 900, HEIGHT * WIDTH - 1000]}
    outlines = [(0, 1, [corners]), (0, 2, runs), (1, 2, [corners, corners])]
    coco = {
        "images": [
            {"id": i, "file_name": f"{name}.png", "height": HEIGHT, "width": WIDTH} for i, name in enumerate("ab")
        ],
        "categories": [{"id": 1, "name": "car"}, {"id": 2, "name": "road"}],
        "annotations": [{"image_id": i, "category_id": of, "segmentation": drawn} for i, of, drawn in outlines],
    }
    points = [[10.0, 10.0], [90.0, 20.0], [50.0, 80.5]]
    regions = [
        {"original_width": WIDTH, "original_height": HEIGHT, "value": {"points": points, "polygonlabels": [name]}}
        for name in ("car", "road")
    ]
    studio = [
        {"id": i, "data": {"image": f"/data/{name}.png"}, "annotations": [{"result": regions}]}
        for i, name in enumerate("ab")
    ]
    shape = "4.0,4.0;40.0,6.0;20.5,40.0"
    mask = '<mask label="road" rle="10, 20, 70" left="3" top="5" width="10" height="10" z_order="1"/>'
    picture = '<image name="{}.png" width="64" height="48" subset="train"><polygon label="car" points="{}"/>{}</image>'
    cvat = f"<annotations>{''.join(picture.format(name, shape, mask) for name in 'ab')}</annotations>"
    written = {"coco.json": json.dumps(coco), "studio.json": json.dumps(studio), "cvat.xml": cvat}
    for file, text in written.items():
        (folder / file).write_text(text)
    return [folder / file for file in written]


def foreign_graphs(folder: Path) -> list[Path]:
    """Graphs as other programs write them, as small as they can be."""
    ends = ("logits", "Softmax", "Sigmoid")
    made = [foreign_onnx(folder / f"{end}.onnx", end, classes=1 if end == "Sigmoid" else 3) for end in ends]
    return [*made, foreign_onnx(folder / "last.onnx", channels_last=True)]
