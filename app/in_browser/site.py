"""The folder of the page: scripts, runtime, graph files, a sample clip, and a manifest of all of them."""

import gzip
import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.app.in_browser.runtime import LICENCE, PROVIDERS, VERSION, served
from steadyseg.app.palette import display_classes, strengths
from steadyseg.app.video.render import draw_uncertainty
from steadyseg.app.video.verdict import THE_DATA, WORDS
from steadyseg.app.video.video_writer import VideoSink
from steadyseg.core.errors import InputError
from steadyseg.core.expected import DOUBTFUL, LOST_A_FRAME
from steadyseg.core.reference import NOVEL
from steadyseg.core.system.files import whole_folder
from steadyseg.export.file.metadata import GraphMeta
from steadyseg.export.file.onnx_file import OnnxFile
from steadyseg.street.drive import Street

WEB = Path(__file__).parent / "web"
FORMAT = "steadyseg-web-1"
MANIFEST = "manifest.json"
PACKED, GZIP_LEVEL = ".packed", 6
"""Suffix of large files: they are gzip, and the page unpacks them itself. Plain servers compress nothing, and servers
that know the suffix .gz may unpack such a file on its way. Level 9 makes the runtime 0.4 % smaller in twice the
time."""
HASH_DIGITS = 12
"""Digits of a file's hash in its name: a changed file gets another name, so that no cache mixes old and new."""
SAMPLE_SEED, SAMPLE_SECONDS, SAMPLE_FPS = 7, 10, 15


def check_site_place(folder: Path, overwrite: bool) -> None:
    """Raises InputError if the folder cannot be written. Only a folder of `write_site` is ever replaced."""
    if not folder.parent.is_dir():
        raise InputError(f"-o {folder}: the folder above it does not exist; make it first")
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not overwrite:
        raise InputError(f"-o {folder}: exists already; choose another name or add --overwrite")
    if not is_site(folder):
        raise InputError(
            f"-o {folder}: not a folder of `steadyseg export --target web`, so it is not replaced; choose another"
        )


def is_site(folder: Path) -> bool:
    """True if `write_site` wrote the folder."""
    try:
        return bool(json.loads((folder / MANIFEST).read_bytes())["format"] == FORMAT)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def check_site(folder: Path) -> None:
    """Raises InputError for a folder that `write_site` did not write."""
    if not is_site(folder):
        raise InputError(
            f"--in-browser {folder}: not a folder of `steadyseg export MODEL --target web -o DIR`; write one with it"
        )


def write_site(folder: Path, graphs: Sequence[OnnxFile], runtime: Mapping[str, bytes], overwrite: bool = False) -> None:
    """Writes the folder beside its place and renames it, so that a server never shows half of it.

    The first graph's method is the page's default.
    """
    check_site_place(folder, overwrite)
    with whole_folder(folder, replace=True) as partial:
        fill(partial, graphs, runtime)


def fill(folder: Path, graphs: Sequence[OnnxFile], runtime: Mapping[str, bytes]) -> None:
    """Writes all files and the manifest."""
    for name in sorted(path.name for path in WEB.iterdir() if path.is_file()):
        shutil.copyfile(WEB / name, folder / name)
    first = graphs[0].meta
    write_sample(folder / "street.mp4", first.height, first.width)
    record = describe(first)
    record["sample"] = {
        **keep(folder, "sample", "street.mp4", (folder / "street.mp4").read_bytes()),
        "fps": SAMPLE_FPS,
        "seconds": SAMPLE_SECONDS,
    }
    (folder / "street.mp4").unlink()
    # Entry, glue and machine code name each other, so these keep their names and the folder has the version in its own.
    home = f"runtime-{VERSION}"
    record["runtime"] = {
        "version": VERSION,
        **{
            provider: {
                "entry": keep(folder, home, names[0], runtime[names[0]], named=False),
                "glue": keep(folder, home, names[1], runtime[names[1]], named=False),
                "wasm": keep(folder, home, names[2] + PACKED, runtime[names[2]], named=False),
            }
            for provider, names in ((provider, [*map(served, names)]) for provider, names in PROVIDERS.items())
        },
    }
    shutil.copyfile(LICENCE, folder / home / "LICENSE")
    record["methods"] = describe_methods(folder, graphs)
    text = json.dumps(record, indent=1, ensure_ascii=False)
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def write_sample(path: Path, height: int, width: int) -> None:
    """Writes ten seconds of the synthetic street (H.264), for visitors without a camera."""
    street = Street(seed=SAMPLE_SEED, height=height, width=width, fps=SAMPLE_FPS)
    with VideoSink(path, width, height, SAMPLE_FPS) as sink:
        for frame in street.frames(SAMPLE_SECONDS * SAMPLE_FPS):
            sink.write(frame.image, frame.time_s)


def describe(meta: GraphMeta) -> dict[str, Any]:
    """Returns the facts of the network that hold for every method."""
    return {
        "format": FORMAT,
        "model": meta.source,
        "model_sha256": meta.source_sha256,
        "licence": meta.licence,
        "height": meta.height,
        "width": meta.width,
        "head_stride": meta.head_stride,
        "classes": [
            {"name": name, "color": list(color)}
            for name, color in zip(meta.classes.names, display_classes(meta.classes).colors, strict=True)
        ],
        "shades": draw_uncertainty(np.arange(256, dtype=np.uint8)[None])[0].tolist(),
        "novel": NOVEL,
        "doubtful": DOUBTFUL,
        "lost_a_frame": LOST_A_FRAME,
        "verdicts": {verdict: words.format(right="{right}", data=THE_DATA) for verdict, words in WORDS.items()},
        "strength": (strengths(1.0) / 255).round(4).tolist(),
        "made_with": meta.versions,
    }


def describe_methods(folder: Path, graphs: Sequence[OnnxFile]) -> list[dict[str, Any]]:
    """Writes the graph files and returns an entry for each method."""
    entries = []
    for graph in graphs:
        meta, method = graph.meta, graph.meta.method
        kept = keep(folder, "models", f"{method.mode}-{meta.precision}.onnx{PACKED}", graph.data)
        entries.append(
            {
                "mode": method.mode,
                "samples": method.samples,
                "tau": method.tau,
                "temperature": method.temperature,
                "calibrated": method.calibrated,
                "note": method.note,
                "reference_scores": len(meta.reference_scores),
                "expected": bool(meta.expected),
                "file": {**kept, "precision": meta.precision},
            }
        )
    return entries


def keep(folder: Path, home: str, name: str, data: bytes, named: bool = True) -> dict[str, Any]:
    """Writes a file below `home` and returns its {path, bytes, sha256} for the manifest.

    `named`: its name contains its hash. A name that ends in `PACKED` is compressed.
    """
    data = gzip.compress(data, GZIP_LEVEL, mtime=0) if name.endswith(PACKED) else data
    digest = hashlib.sha256(data).hexdigest()
    stem, dot, endings = name.partition(".")
    path = f"{home}/{stem}-{digest[:HASH_DIGITS]}{dot}{endings}" if named else f"{home}/{name}"
    (folder / home).mkdir(exist_ok=True)
    (folder / path).write_bytes(data)
    return {"path": path, "bytes": len(data), "sha256": digest}
