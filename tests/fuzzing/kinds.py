"""The fuzzed kinds of files: seeds, mutations, and the product's code that opens them, stage by stage."""

import contextlib
import json
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import numpy as np
import onnx
import torch
from google.protobuf.message import DecodeError
from PIL import Image

from fuzzing import seeds
from fuzzing.mutate import ODD, damage_bytes, damage_json, damage_message
from fuzzing.trial import Stages
from steadyseg.app.sources.open_source import open_source
from steadyseg.core.frame import Frame
from steadyseg.core.method import MethodOptions
from steadyseg.core.model.checkpoint import read_meta
from steadyseg.core.model.model import Model
from steadyseg.core.model.tensor_file import HEADER_KEY, read_tensors
from steadyseg.core.options import Every
from steadyseg.core.preprocess import Normalize
from steadyseg.core.system.json_text import parse_json
from steadyseg.core.system.pictures import look_at, read_upright, upright_size
from steadyseg.export.file.foreign import read_foreign
from steadyseg.export.file.onnx_file import read_onnx
from steadyseg.export.file.sessions import cpu_session
from steadyseg.export.write.traced import OPSET
from steadyseg.runtime.choose import RunOptions
from steadyseg.runtime.classifier import GraphClassifier
from steadyseg.runtime.open_model import is_classifier, make_segmenter, open_model
from steadyseg.seg.any_network import AnyNetwork
from steadyseg.seg.data.class_file import classes_of
from steadyseg.seg.data.formats.open_source import open_labels
from steadyseg.seg.data.formats.source import CLASSES_FILE
from steadyseg.seg.data.import_labels import import_labels
from steadyseg.seg.data.label_folder import open_split


@dataclass(frozen=True)
class Kind:
    """One kind of file."""

    seeds: Callable[[Path], list[Path]]
    damage: Callable[[bytes, Random], bytes]
    stages: Stages


def open_checkpoint(path: Path) -> Iterator[str]:
    """Opens a checkpoint like `steadyseg video` and `evaluate`, at a size that the owner chose."""
    read_tensors(path)
    yield "safetensors read"
    read_meta(path)
    yield "record read"
    model = open_model(str(path))
    if isinstance(model, Model) and is_classifier(model):
        network = model.network()
        yield "network opened"
        network(torch.zeros(1, 3, 32, 32))
    else:
        segmenter = make_segmenter(model, MethodOptions("vq-dnn"), RunOptions("torch", size=96))
        yield "network opened"
        segmenter.step(Frame(np.zeros((96, 128, 3), np.uint8), 0, 0.0))
    yield "one picture computed"


def open_graph_file(path: Path) -> Iterator[str]:
    """Opens a graph file like `steadyseg video` and `evaluate`."""
    if is_parsed(path):
        yield "graph parsed"
    file = read_onnx(path)
    yield "graph accepted"
    if file.meta.kind == "logits":
        return
    if file.meta.kind == "classifier":
        classifier = GraphClassifier(file)
        yield "backend opened"
        side = file.meta.height
        classifier.predict(np.zeros((1, side, side, 3), np.uint8))
    else:
        segmenter = make_segmenter(file, MethodOptions(), RunOptions())
        yield "backend opened"
        segmenter.step(Frame(np.zeros((96, 128, 3), np.uint8), 0, 0.0))
    yield "one picture computed"


def is_parsed(path: Path) -> bool:
    """Returns True if protobuf's own parser takes the file: the first check, before the product's."""
    try:
        onnx.load_model_from_string(path.read_bytes())
    except (ValueError, DecodeError):
        return False
    return True


def open_label_file(path: Path) -> Iterator[str]:
    """Opens a label file like `steadyseg data import`."""
    with contextlib.suppress(ValueError, ElementTree.ParseError):
        ElementTree.parse(path) if path.suffix == ".xml" else parse_json(path.read_bytes())
        yield "JSON or XML read"
    source = open_labels(path)
    yield "labels accepted"
    with tempfile.TemporaryDirectory() as place:
        import_labels(source, path.parent, Path(place) / "out", background="rest", shares={})
        if stray := {one.name for one in Path(place).iterdir()} - {"out"}:
            raise RuntimeError(f"wrote {stray} beside its folder")
    yield "imported"


def open_foreign_graph(path: Path) -> Iterator[str]:
    """Opens another program's graph like `steadyseg wrap`."""
    if is_parsed(path):
        yield "graph parsed"
    foreign = read_foreign(path, None, OPSET)
    yield "graph accepted"
    session = cpu_session(foreign.data)

    def run(image: torch.Tensor) -> dict[str, torch.Tensor]:
        picture = image.permute(0, 2, 3, 1) if foreign.channels_last else image
        outputs = session.run(list(foreign.outputs), {foreign.input: np.ascontiguousarray(picture.numpy())})
        return dict(zip(foreign.outputs, map(torch.from_numpy, outputs), strict=True))

    network = AnyNetwork(run, foreign.size, Normalize((0.5,) * 3, (0.25,) * 3), None, path.name)
    yield "its output known"
    network(torch.zeros(1, 3, *foreign.size))
    yield "one picture computed"


def open_image(path: Path) -> Iterator[str]:
    """Opens an image like every source, label and data set."""
    look_at(path, upright_size)
    yield "header read"
    read_upright(path)
    yield "picture decoded"
    with open_source(str(path)) as source:
        list(source)
    yield "came as a frame"


def open_video(path: Path) -> Iterator[str]:
    """Opens a video like `steadyseg video --every auto` and `--every 3`, and segments its first frames."""
    with open_source(str(path)) as source:
        yield "first frame decoded"
        every: Every = "auto" if path.stat().st_size % 2 else 3
        segmenter = make_segmenter(
            open_model("street-tiny"), MethodOptions(), RunOptions("torch", size=96, every=every)
        )
        for number, frame in enumerate(islice(source, 100)):
            if number < 6 and segmenter.step(frame).label.shape != frame.image.shape[:2]:
                raise RuntimeError("a map of another size")
    yield f"segmented, every {every}"


def open_class_file(path: Path) -> Iterator[str]:
    """Opens a file of classes, as `steadyseg train seg --classes` and the data folders of `evaluate` do."""
    with contextlib.suppress(ValueError):
        parse_json(path.read_bytes())
        yield "JSON read"
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        (root / CLASSES_FILE).write_bytes(path.read_bytes())
        for folder, picture in (("train", np.zeros((1, 4, 3), np.uint8)), ("trainannot", np.uint8([[0, 1, 5, 255]]))):
            (root / folder).mkdir()
            Image.fromarray(picture).save(root / folder / "a.png")
        classes = classes_of(root, None)
        yield "class list accepted"
        classes.palette()
        json.dumps([classes.names, classes.void_id])
        _, label = open_split(root, "train", classes)[0]
        if not (
            (label == 255) | (label < len(classes)) if label.dtype == np.uint8 else label < 1 << len(classes)
        ).all():
            raise RuntimeError("a label outside the classes")
        yield "label read"


def damage_checkpoint(data: bytes, dice: Random) -> bytes:
    """Damages the record, the table of tensors, the weights, or any byte."""
    way, length = dice.random(), struct.unpack("<Q", data[:8])[0]
    if way < 0.1:
        return damage_bytes(data, dice)
    if way < 0.25:
        return damage_bytes(data, dice, start=8 + length)
    header = json.loads(data[8 : 8 + length])
    if way < 0.35:
        metadata = header.pop("__metadata__")
        header = damage_json(header, dice) | {"__metadata__": metadata}
    else:
        record = damage_json(json.loads(header["__metadata__"][HEADER_KEY]), dice)
        header["__metadata__"][HEADER_KEY] = json.dumps(record)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


def damage_graph(data: bytes, dice: Random) -> bytes:
    """Damages the graph's messages, its metadata if it has some, or any byte."""
    way = dice.random()
    if way < 0.1:
        return damage_bytes(data, dice)
    model = onnx.load_model_from_string(data)
    if way < 0.3 and model.metadata_props:
        entry = dice.choice(model.metadata_props)
        try:
            entry.value = json.dumps(damage_json(json.loads(entry.value), dice))
        except ValueError:  # a plain text
            entry.value = damage_bytes(entry.value.encode(), dice).decode(errors="replace")
    else:
        model.graph.CopyFrom(damage_message(model.graph, dice))
    return model.SerializeToString()


def damage_label_file(data: bytes, dice: Random) -> bytes:
    """Damages a JSON value, a text between quotation marks in XML, or any byte."""
    if dice.random() < 0.1:
        return damage_bytes(data, dice)
    if data[:1] != b"<":
        return json.dumps(damage_json(json.loads(data), dice)).encode()
    parts = data.decode().split('"')
    for _ in range(dice.choice((1, 1, 2, 3))):
        place = dice.randrange(1, len(parts), 2)
        odd = (str(dice.choice(ODD)), parts[dice.randrange(1, len(parts), 2)], "../x", f"{parts[place]}9", "1e999,-1;2")
        parts[place] = escape(dice.choice(odd)[:5000])
    return '"'.join(parts).encode(errors="replace")


def damage_image(data: bytes, dice: Random) -> bytes:
    """Damages a picture behind the bytes that name its format; the checksums of a PNG are corrected in most cases."""
    found = damage_bytes(data, dice, start=16 if data[:4] == b"\x89PNG" else 4)
    return with_sums(found) if found[:4] == b"\x89PNG" and dice.random() < 0.8 else found


def with_sums(data: bytes) -> bytes:
    """Corrects the checksums of a PNG's chunks."""
    found, place = bytearray(data), 8
    while place + 12 <= len(found):
        end = place + 8 + int.from_bytes(found[place : place + 4], "big")
        found[end : end + 4] = struct.pack(">I", zlib.crc32(found[place + 4 : end]))
        place = end + 4
    return bytes(found)


KINDS = {
    "checkpoint": Kind(seeds.checkpoints, damage_checkpoint, open_checkpoint),
    "graph": Kind(seeds.graphs, damage_graph, open_graph_file),
    "class file": Kind(seeds.class_files, damage_label_file, open_class_file),
    "label file": Kind(seeds.label_files, damage_label_file, open_label_file),
    "foreign graph": Kind(seeds.foreign_graphs, damage_graph, open_foreign_graph),
    "image": Kind(seeds.images, damage_image, open_image),
    "video": Kind(seeds.videos, partial(damage_bytes, start=32), open_video),
}
