"""Networks that the product keeps for itself: shipped graphs, and entries of the cache.

A damaged file gives the network of the whole file, or is made again.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from pathlib import Path
from random import Random

from fuzzing.mutate import damage_bytes, damage_json
from steadyseg.core.errors import InputError
from steadyseg.runtime.converted import FOLDER, Converted, kept, pack, require_shapes
from steadyseg.runtime.open_model import open_checkpoint
from steadyseg.runtime.shipped_graphs import INDEX, SUFFIX, ShippedGraphs

NETWORK, GRAPH, KEY = "street-tiny", "fp32 180x320", f"{'0' * 16}-{'a' * 64}"
check = partial(require_shapes, height=180, width=320, classes=11)


def whole() -> Converted:
    """The network of the undamaged archive."""
    model = open_checkpoint(NETWORK)
    found = ShippedGraphs(model.path, model.sha256).read(GRAPH, model.arrays, check)
    assert found
    return found


def require_same(found: Converted) -> None:
    """Raises RuntimeError for another network."""
    if pack(found) != pack(whole()):
        raise RuntimeError("another network, and not a word")


def shipped_graphs(folder: Path) -> list[Path]:
    """The archive of an included network."""
    return [Path(shutil.copy(open_checkpoint(NETWORK).path.with_suffix(SUFFIX), folder))]


def damage_archive(data: bytes, dice: Random) -> bytes:
    """Damages the index, another member, or any byte; the checksums of members are right."""
    if dice.random() < 0.3:
        return damage_bytes(data, dice)
    with zipfile.ZipFile(BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    if dice.random() < 0.7:
        index = json.loads(members[INDEX])
        index["graphs"][GRAPH] = damage_json(index["graphs"][GRAPH], dice)
        members[INDEX] = json.dumps(index).encode()
    else:
        name = dice.choice(sorted(members))
        members[name] = damage_bytes(members[name], dice)
    with zipfile.ZipFile(written := BytesIO(), "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return written.getvalue()


def open_shipped_graphs(path: Path) -> Iterator[str]:
    """Opens the graphs of an included network."""
    model = open_checkpoint(NETWORK)
    graphs = ShippedGraphs(path, model.sha256)
    if graphs:
        yield "index read"
    found = graphs.read(GRAPH, model.arrays, check) if GRAPH in graphs else None
    if found is None:
        raise InputError("counts as absent")
    require_same(found)
    yield "the same network"


def cache_entries(folder: Path) -> list[Path]:
    """An entry of the cache, written by another process: OpenVINO's threads must not be this process's."""
    code = f"from fuzzing.own_files import *; Path('entry.bin').write_bytes(pack(whole(), {KEY!r}))"
    path = os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))
    subprocess.run([sys.executable, "-c", code], check=True, cwd=folder, env=os.environ | {"PYTHONPATH": path})
    return [folder / "entry.bin"]


def open_cache_entry(path: Path) -> Iterator[str]:
    """Finds the network in the cache, beside another's file, as every start does."""
    made = list[int]()

    def convert() -> Converted:
        made.append(1)
        return whole()

    with tempfile.TemporaryDirectory() as place:
        os.environ["STEADYSEG_CACHE"] = place
        folder = Path(place) / FOLDER
        folder.mkdir(mode=0o700)
        shutil.copy(path, folder / KEY)
        (folder / "thesis.txt").write_text("mine")
        yield "looked for"
        found = kept(KEY, convert, check)
        if {one.name for one in folder.iterdir()} != {KEY, "thesis.txt"}:
            raise RuntimeError("deleted another's file, or left one")
        require_same(found)
    if made:
        raise InputError("made again")
    yield "the same network"
