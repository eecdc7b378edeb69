"""The measured part of docs/browser.md, from docs/browser.json."""

import json
from pathlib import Path
from typing import Any

from benchmarks.document import table, wrap
from core.atomic_file import write_whole

BEGIN, END = "<!-- measured -->\n", "<!-- end -->"
RATE, FIRST_S, WASM_MB = 10.0, 5.0, 20.0
"""Targets: frames a second with two threads, seconds to the first result, and megabytes fetched."""


def document(docs: Path) -> str:
    """The text with today's record between its two marks."""
    text = (docs / "browser.md").read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    record = json.loads((docs / "browser.json").read_text())
    return f"{before}{BEGIN}{measured(record)}\n{END}{after}"


def write_document(docs: Path) -> None:
    write_whole(docs / "browser.md", document(docs).encode())


def measured(record: dict[str, Any]) -> str:
    parts = [machine(record), fetched(record), parity(record), speed(record), soak(record)]
    return "\n\n".join(part for part in parts if part)


def machine(record: dict[str, Any]) -> str:
    made = next(iter(record.values()))["made"]
    return wrap(f"""
`python -m benchmarks.in_browser`, commit {made["commit"]}, two cores of an {made["processor"]}, {made["system"]}; Chromium, its
camera (a drive down the street, 480x360 at 25 Hz) and the server on the same two cores. WebAssembly's SIMD has 128 bits: what a
processor has beyond AVX2 is not used.
""")


def fetched(record: dict[str, Any]) -> str:
    def line(model: str, one: dict[str, int]) -> list[str]:
        way = one["page"] + one["runtime_wasm"] + one["model"]
        target = f"{way / 1e6:.1f} (target {WASM_MB:g}{'' if way <= WASM_MB * 1e6 else ', missed'})"
        return [f"`{model}`", *(f"{one[key] / 1e6:.2f}" for key in ("page", "runtime_wasm", "model", "sample")), target]

    lines = [line(model, rows["sizes"]) for model, rows in record.items()]
    return table(("MB fetched", "page", "runtime", "one method's file", "street sample", "WebAssembly in all"), lines)


def parity(record: dict[str, Any]) -> str:
    lines = [
        [f"`{model}`", name, str(row["frames"]), f"{100 * row['labels_equal']:.3f} %", str(row["largest_map_difference"]),
         f"{100 * row['map_pixels_differing']:.3f} %"]
        for model, rows in record.items() for name, row in rows.get("parity", {}).items()
    ]  # fmt: skip
    header = (
        "against ONNX Runtime in Python",
        "provider",
        "frames",
        "labels equal, least",
        "maps apart, most of 255",
        "map pixels that differ",
    )
    return table(header, lines)


def speed(record: dict[str, Any]) -> str:
    def line(model: str, name: str, row: dict[str, Any]) -> list[str]:
        rate, first = row["frames_per_s"], row["first_result_s"]
        return [f"`{model}`", name, f"{rate:.1f}{'' if rate >= RATE else f' (target {RATE:g}, missed)'}",
                f"{row['age_ms_p50']:.0f} / {row['age_ms_p95']:.0f}",
                f"{first:.1f}{'' if first <= FIRST_S else f' (target {FIRST_S:g}, missed)'}"]  # fmt: skip

    lines = [line(model, name, row) for model, rows in record.items() for name, row in rows.get("speed", {}).items()]
    return table(("camera, smoothed", "provider", "frames/s", "age ms, p50 / p95", "first result, s"), lines)


def soak(record: dict[str, Any]) -> str:
    said = []
    for model, rows in record.items():
        if not (one := rows.get("soak")):
            continue
        heap, held = (", ".join(f"{value:.0f}" for value in one["thirds"][key]) for key in ("heap_mb", "chromium_mb"))
        after = one["after_20_starts"]
        said.append(
            wrap(f"""
`{model}` at a camera for {one["seconds"] / 60:.0f} minutes ({one["shown"]} results): the JavaScript heap had at most
{heap} MB in the three thirds, all of Chromium's processes {held} MB; after 20 stops and starts
{after["heap_mb"]:.0f} and {after["chromium_mb"]:.0f} MB, with {after["workers"]} worker{"s" * (after["workers"] > 1)}.
Requests to other hosts: {one["requests_to_other_hosts"]}.
""")
        )
    return "\n\n".join(said)
