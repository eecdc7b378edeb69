"""The same frames through ONNX Runtime in Python and through the page's, in a browser that Playwright drives."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from export.onnx_file import read_onnx
from export.proof import GAP, GAP_AT, RESET_AT, session_runner

MAPS = ("label", "confidence", "entropy", "disagreement")
SCRIPT = """async ({ mode, provider, threads, frames, width }) => {
  const { Segmenter } = await import(new URL("steadyseg.js", document.baseURI).href);
  const bytes = (text) => Uint8ClampedArray.from(atob(text), (sign) => sign.charCodeAt(0));
  const text = (map) => btoa(Array.from(map, (value) => String.fromCharCode(value)).join(""));
  globalThis.compared ??= await Segmenter.open("./", { mode, provider, threads });
  const answers = [];
  for (const { pixels, gap, reset } of frames) {
    const { maps } = await compared.maps(new ImageData(bytes(pixels), width), { gap, reset });
    answers.push(Object.fromEntries(Object.entries(maps).map(([name, map]) => [name, text(map)])));
  }
  return { provider: compared.provider, threads: compared.threads, notes: compared.notes, answers };
}"""


def compare_in_browser(
    page: Any, graph: Path, frames: Sequence[np.ndarray], provider: str, threads: int
) -> dict[str, Any]:
    """Every frame (h, w, 3) uint8 of the network's size through both, each side with its own state; a gap and a reset are in.

    `page` shows the folder that the graph file lies in. The least share of equal labels in a frame, the largest difference of
    the other maps in levels of 255, and how many of their pixels differ at all.
    """
    file = read_onnx(graph)
    run = session_runner(file.model)
    shapes = {
        value.name: [size.dim_value for size in value.type.tensor_type.shape.dim] for value in file.model.graph.input
    }
    state = {name: np.zeros(shape, np.float32) for name, shape in shapes.items() if name.startswith("state_")}
    equal, apart, differing = 1.0, 0, 0
    answer: dict[str, Any] = {}
    for number, frame in enumerate(frames):
        gap, reset = float(GAP if number == GAP_AT else 1), number in (0, RESET_AT)
        inputs = {"frame": frame[None], "gap": np.array([gap], np.float32), "reset": np.array([reset], np.float32)}
        found = run({**inputs, **state})
        state = {name: found[name.replace("_in", "_out")] for name in state}
        asked = {"pixels": encode(frame), "gap": gap, "reset": reset}
        answer = page.evaluate(SCRIPT, {
            "mode": file.meta.mode, "provider": provider, "threads": threads, "frames": [asked], "width": frame.shape[1],
        })  # fmt: skip
        there = {name: decode(answer["answers"][0][name], frame) for name in MAPS}
        equal = min(equal, float((there["label"] == found["label"][0]).mean()))
        for name in MAPS[1:]:
            difference = np.abs(there[name].astype(int) - found[name][0].astype(int))
            apart, differing = max(apart, int(difference.max())), differing + int((difference > 0).sum())
    pixels = sum(frame.shape[0] * frame.shape[1] for frame in frames) * len(MAPS[1:])
    return {
        "provider": answer["provider"], "threads": answer["threads"], "notes": answer["notes"], "frames": len(frames),
        "labels_equal": equal, "largest_map_difference": apart, "map_pixels_differing": differing / pixels,
    }  # fmt: skip


def encode(frame: np.ndarray) -> str:
    """RGBA as base64."""
    opaque = np.concatenate([frame, np.full((*frame.shape[:2], 1), 255, np.uint8)], -1)
    return base64.b64encode(opaque.tobytes()).decode()


def decode(text: str, frame: np.ndarray) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(frame.shape[:2])
