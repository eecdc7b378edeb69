"""Writes the graphs that ship with a checkpoint: `python -m steadyseg.studies.harness.graphs NAME ...`.

Each network is converted once, and every large constant is described by a tensor of the checkpoint. The description is
checked: it gives the bytes of the conversion.
"""

import hashlib
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from steadyseg.core.errors import InputError
from steadyseg.core.method import MethodOptions
from steadyseg.core.model.model import Model
from steadyseg.core.picture_size import network_size
from steadyseg.runtime.conversion import convert
from steadyseg.runtime.converted import write_ir
from steadyseg.runtime.network_plan import StoredNetwork
from steadyseg.runtime.open_model import open_checkpoint
from steadyseg.runtime.shipped_graphs import INDEX, SMALL, SUFFIX, Recipe, constant, graph_digest, rounded

METHODS = (MethodOptions(mode="vq-dnn"), MethodOptions(mode="vq-bnn"), MethodOptions(mode="bnn", samples=5))
FRAMES = ((480, 640), (720, 1280), (1920, 1080))
"""Sizes of frames, (h, w): 4:3, 16:9, and a telephone held upright."""
OTHER_FRAMES = (
    *((1080, width) for width in (1080, 1350, 1620, 1728, 2000, 2160, 2340, 2560)),
    *((height, 1080) for height in (1350, 1440, 2340)),
)
"""Further ones, for the first method alone: 1:1 to 2.37:1, and upright 4:5, 3:4 and a long telephone."""
SMALLEST_BYTES = 512
"""A smaller constant is stored as it is."""
NEIGHBOURS = 4
"""A factor is looked for among so many neighbouring float32 numbers on either side."""
MAX_WRONG = 0.01
"""Largest share of rounded weights that may need a correction."""


class Writer:
    """The file of one checkpoint; equal bytes are stored once."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.tensors = model.arrays
        self.small, self.places = bytearray(), dict[bytes, int]()
        self.files, self.graphs = dict[str, bytes](), dict[str, Any]()

    def add(self, options: MethodOptions, precision: str, frame: tuple[int, int]) -> str:
        """Adds the network of a method; returns its name."""
        meta = self.model.meta
        method = options.resolve(meta)
        if precision == "int8":
            method = meta.method_in_int8(method)
        stored = StoredNetwork(self.model, method, precision)
        height, width = network_size(*frame, meta.height)
        network = convert(stored.module, height, width, stored.plan.shared)
        name = stored.plan.name(height, width)
        models = [self._describe(*write_ir(one), [name, network.rates, network.mask_shapes]) for one in network.models]
        self.graphs[name] = {
            "models": [one[:2] for one in models],
            "digests": [one[2] for one in models],
            "rates": network.rates,
            "shapes": network.mask_shapes,
        }
        return name

    def _describe(self, xml: bytes, weights: bytes, about: list[Any]) -> tuple[str, list[Recipe], str]:
        file = f"{hashlib.sha256(xml).hexdigest()[:16]}.xml"
        self.files[file] = xml
        recipes, end = list[Recipe](), 0
        for start, size, kind in constants(xml):
            recipes += [self._stored(weights[end:start])] if start > end else []  # gaps between constants
            recipes.append(self._recipe(weights[start : start + size], kind))
            end = start + size
        small = bytes(self.small)
        made = b"".join(constant(one, self.tensors, small) for one in recipes)
        if made != weights[:end]:
            raise InputError("the recipes do not give the bytes of the conversion")
        return file, recipes, graph_digest(xml, made, about)

    def _recipe(self, data: bytes, kind: str) -> Recipe:
        if len(data) < SMALLEST_BYTES or kind not in ("f32", "i8"):
            return self._stored(data)
        values = np.frombuffer(data, np.float32 if kind == "f32" else np.int8)
        for name, tensor in self.tensors.items():
            if tensor.size != values.size or not tensor.ndim:
                continue
            weights = tensor.astype(np.float32)
            rows = weights.reshape(len(weights), -1)
            if kind == "i8":
                wrong = np.flatnonzero(rounded(rows).ravel() != values)
                if len(wrong) < MAX_WRONG * values.size:
                    pairs = np.stack([wrong, values[wrong]], 1).astype(np.int32)
                    return self._stored(pairs.tobytes())._replace(kind="rounded", tensor=name)
            elif weights.tobytes() == data:
                return Recipe("tensor", 0, 0, name)
            elif (found := factors(values.reshape(rows.shape), rows)) is not None:
                return self._stored(found.tobytes())._replace(kind="scaled", tensor=name)
        return self._stored(data)

    def _stored(self, data: bytes) -> Recipe:
        if data not in self.places:
            self.places[data] = len(self.small)
            self.small += data
        return Recipe("bytes", self.places[data], len(data))

    def write(self) -> Path:
        """Writes the file beside the checkpoint."""
        path = self.model.path.with_suffix(SUFFIX)
        index = {"checkpoint": self.model.sha256, "graphs": self.graphs}
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in {INDEX: json.dumps(index).encode(), SMALL: bytes(self.small), **self.files}.items():
                archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, 9)  # no date: the bytes repeat
        return path


def constants(xml: bytes) -> Iterator[tuple[int, int, str]]:
    """Yields offset, size and number type of each constant in the bytes, each place once, in ascending order."""
    layers = (layer.find("data") for layer in ElementTree.fromstring(xml).iter("layer") if layer.get("type") == "Const")
    places = {
        (int(one.get("offset", 0)), int(one.get("size", 0)), one.get("element_type", ""))
        for one in layers
        if one is not None
    }
    end = -1
    for start, size, kind in sorted(places):
        if start > end:
            yield start, size, kind
            end = start + size - 1


def factors(values: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
    """Returns float32 factors with rows * factors == values in every bit; None where there are none."""
    largest = np.abs(rows).argmax(1)
    lines = np.arange(len(rows))
    with np.errstate(all="ignore"):
        middle = (values[lines, largest].astype(np.float64) / rows[lines, largest]).astype(np.float32)
    # A row of zeros, as of a channel that training switched off, has the sign of its factor alone.
    signs = np.copysign(np.float32(1.0), values[lines, largest]) * np.copysign(np.float32(1.0), rows[lines, largest])
    middle = np.where(np.isfinite(middle), middle, signs)
    found, done = middle.copy(), np.zeros(len(rows), bool)
    for towards in (np.float32(np.inf), np.float32(-np.inf)):
        tried = middle
        for _ in range(NEIGHBOURS):
            fits = ((rows * tried[:, None]).view(np.int32) == values.view(np.int32)).all(1) & ~done
            found[fits], done = tried[fits], done | fits
            tried = np.nextafter(tried, towards)
    return found if done.all() else None


def main(names: list[str]) -> int:
    """Writes the graphs of the named checkpoints."""
    for name in names:
        writer = Writer(open_checkpoint(name))
        meta = writer.model.meta
        for precision in ("fp32", "int8") if meta.int8 else ("fp32",):
            for options in METHODS:
                for frame in (*FRAMES, *OTHER_FRAMES) if options == METHODS[0] else FRAMES:
                    print(f"{name}: {writer.add(options, precision, frame)}", flush=True)
        path = writer.write()
        print(f"{path}: {len(writer.graphs)} graphs, {path.stat().st_size / 1e3:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
