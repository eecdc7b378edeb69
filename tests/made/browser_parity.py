"""Parity of ONNX Runtime in Python and in the page on one clip, in a browser that Playwright drives."""

import base64
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.export.file.onnx_file import OnnxFile, check_onnx
from steadyseg.export.file.sessions import session_runner
from steadyseg.export.write.stream_run import GAPS, RESETS

MAPS = ("confidence", "entropy", "disagreement", "energy")
SCRIPT = """async ({ mode, provider, threads, pixels, gap, reset, width }) => {
  const { Segmenter } = await import(new URL("steadyseg.js", document.baseURI).href);
  const bytes = (text) => Uint8ClampedArray.from(atob(text), (sign) => sign.charCodeAt(0));
  const text = (map) => btoa(Array.from(map, (value) => String.fromCharCode(value)).join(""));
  globalThis.compared ??= await Segmenter.open("./", { mode, provider, threads });
  const { maps, facts } = await compared.maps(new ImageData(bytes(pixels), width), { gap, reset });
  const encoded = Object.fromEntries(Object.entries(maps).map(([name, map]) => [name, text(map)]));
  return { provider: compared.provider, maps: encoded, familiarity: facts.familiarity };
}"""


def compare_in_browser(
    page: Any, site: Path, frames: Sequence[np.ndarray], provider: str, threads: int
) -> dict[str, Any]:
    """Every frame (h, w, 3) uint8 of the network's size through both, each side with its own state; a gap and a reset
    are in.

    `page` shows the folder `site`; its first method is compared. Returns the least share of equal labels in a
    frame, the largest difference of the other maps in levels of 255, the largest differences of familiarity and
    expected accuracy, and the `familiarities`.
    """
    file = first_graph(site)
    run = session_runner(file.model)
    shapes = {
        value.name: [size.dim_value for size in value.type.tensor_type.shape.dim] for value in file.model.graph.input
    }
    state = {name: np.zeros(shape, np.float32) for name, shape in shapes.items() if name.startswith("state_")}
    equal, apart, familiarities, familiarity_apart, accuracy_apart = 1.0, 0, [], 0.0, 0.0
    answer: dict[str, Any] = {}
    for number, frame in enumerate(frames):
        gap, reset = float(GAPS.get(number, 1)), number in RESETS
        inputs = {"frame": frame[None], "gap": np.array([[gap]], np.float32), "reset": np.array([[reset]], np.float32)}
        found = run({**inputs, **state})
        state = {name: found[name.replace("_in", "_out")] for name in state}
        answer = page.evaluate(
            SCRIPT,
            {
                "mode": file.meta.method.mode,
                "provider": provider,
                "threads": threads,
                "pixels": encode(frame),
                "gap": gap,
                "reset": reset,
                "width": frame.shape[1],
            },
        )
        there = {name: decode(answer["maps"][name], frame) for name in ("label", *MAPS)}
        equal = min(equal, float((there["label"] == found["label"][0]).mean()))
        for name in MAPS:
            apart = max(apart, int(np.abs(there[name].astype(int) - found[name][0]).max()))
        told = answer["familiarity"]
        familiarities.append(found["familiarity"].item())
        familiarity_apart = max(familiarity_apart, abs(told["score"] - familiarities[-1]))
        accuracy_apart = max(accuracy_apart, abs(told["expected"] - found["expected_accuracy"].item()))
    return {
        "provider": answer["provider"],
        "labels_equal": equal,
        "largest_map_difference": apart,
        "familiarities": familiarities,
        "familiarity_apart": familiarity_apart,
        "accuracy_apart": accuracy_apart,
    }


def first_graph(site: Path) -> OnnxFile:
    """The file of the folder's first method, unpacked."""
    method = json.loads((site / "manifest.json").read_bytes())["methods"][0]
    path = site / method["file"]["path"]
    return check_onnx(gzip.decompress(path.read_bytes()), path)


def encode(frame: np.ndarray) -> str:
    """RGBA as base64."""
    opaque = np.concatenate([frame, np.full((*frame.shape[:2], 1), 255, np.uint8)], -1)
    return base64.b64encode(opaque.tobytes()).decode()


def decode(text: str, frame: np.ndarray) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(frame.shape[:2])
