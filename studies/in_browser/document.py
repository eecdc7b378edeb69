"""The measured part of docs/studies/browser, from docs/studies/browser/record.json."""

import json
from pathlib import Path
from typing import Any

from core.system.files import write_atomic
from studies.harness.document import table, wrap

BEGIN, END = "<!-- measured -->\n", "<!-- end -->"
RATE, FIRST_S, WASM_MB = 10.0, 5.0, 20.0
"""Targets: frames a second with two threads, seconds to the first result, and megabytes fetched."""


def document(page: Path) -> str:
    """The text with today's record between its two marks."""
    text = (page / "README.md").read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    record = json.loads((page / "record.json").read_text())
    return f"{before}{BEGIN}{measured(record)}\n{END}{after}"


def write_document(page: Path) -> None:
    write_atomic(page / "README.md", document(page).encode())


def measured(record: dict[str, Any]) -> str:
    """A table for every part, each followed by what it was measured on."""
    parts = [(fetched, "sizes"), (parity, "parity"), (told, "parity"), (speed, "speed"), (soak, "soak")]
    found = [
        (make({model: one[key]["rows"] for model, one in record.items() if key in one}), key) for make, key in parts
    ]
    return "\n\n".join(text for text, _ in found if text) + f"\n\n{machine(record)}"


def machine(record: dict[str, Any]) -> str:
    """Which part was measured where: one sentence for each commit and processor."""
    parts: dict[tuple[str, str], set[str]] = {}
    for one in record.values():
        for part, found in one.items():
            parts.setdefault((found["made"]["commit"], found["made"]["processor"]), set()).add(part)
    where = "; ".join(
        f"{', '.join(sorted(names))} at commit {commit} on two cores of an {processor}"
        for (commit, processor), names in sorted(parts.items())
    )
    return wrap(f"""
`python -m studies.in_browser`: {where}. Chromium, its camera (a drive down the street, 480x360 at 25 Hz) and the server are
on the same two cores. WebAssembly's SIMD has 128 bits: what a processor has beyond AVX is not used.
""")


def fetched(record: dict[str, Any]) -> str:
    def line(model: str, one: dict[str, int]) -> list[str]:
        way = one["page"] + one["runtime"] + one["models"]
        target = f"{way / 1e6:.1f} (target {WASM_MB:g}{'' if way <= WASM_MB * 1e6 else ', missed'})"
        parts = (f"{one[key] / 1e6:.2f}" for key in ("page", "runtime", "models", "sample", "runtime_webgpu"))
        return [f"`{model}`", *parts, target]

    header = (
        "MB sent",
        "page",
        "runtime",
        "one method's file",
        "street sample",
        "runtime for WebGPU",
        "WebAssembly in all",
    )
    return table(header, [line(model, rows) for model, rows in record.items()])


def parity(record: dict[str, Any]) -> str:
    lines = [
        [
            f"`{model}`",
            name,
            str(row["frames"]),
            f"{100 * row['labels_equal']:.3f} %",
            str(row["largest_map_difference"]),
            f"{100 * row['map_pixels_differing']:.3f} %",
        ]
        for model, rows in record.items()
        for name, row in rows.items()
    ]
    header = (
        "against ONNX Runtime in Python",
        "provider",
        "frames",
        "labels equal, least",
        "maps apart, most of 255",
        "map pixels that differ",
    )
    return table(header, lines) if lines else ""


def told(record: dict[str, Any]) -> str:
    """Table of the differences in novelty and frame accuracy, for networks with novelty statistics."""
    lines = [
        [
            f"`{model}`",
            name,
            f"{min(row['novelties']):.2f} to {max(row['novelties']):.2f}",
            f"{row['novelty_apart']:.4f}",
            f"{row['accuracy_apart']:.4f}",
        ]
        for model, rows in record.items()
        for name, row in rows.items()
        if "novelties" in row
    ]
    header = ("the same frames", "provider", "novelty", "apart, most", "expected accuracy apart, most")
    return table(header, lines) if lines else ""


def speed(record: dict[str, Any]) -> str:
    def line(model: str, name: str, row: dict[str, Any]) -> list[str]:
        rate, first = row["frames_per_s"], row["first_result_s"]
        return [
            f"`{model}`",
            name,
            f"{rate:.1f}{'' if rate >= RATE else f' (target {RATE:g}, missed)'}",
            f"{row['age_ms_p50']:.0f} / {row['age_ms_p95']:.0f}",
            f"{first:.1f}{'' if first <= FIRST_S else f' (target {FIRST_S:g}, missed)'}",
        ]

    lines = [line(model, name, row) for model, rows in record.items() for name, row in rows.items()]
    header = ("camera, smoothed", "provider", "frames/s", "age ms, p50 / p95", "first result, s")
    return table(header, lines) if lines else ""


def soak(record: dict[str, Any]) -> str:
    said = []
    for model, one in record.items():
        heap, held = (", ".join(f"{value:.0f}" for value in one["thirds"][key]) for key in ("heap_mb", "chromium_mb"))
        after = one["after_20_starts"]
        said.append(
            wrap(f"""
`{model}` at a camera for {one["seconds"] / 60:.0f} minutes ({one["shown"]} results): the JavaScript heap had at most
{heap} MB in the three thirds, all of Chromium's processes {held} MB; before and after 20 stops and starts of the sample
{after["chromium_mb_before"]:.0f} and {after["chromium_mb"]:.0f} MB, with
{after["workers"]} worker{"s" * (after["workers"] > 1)}.
Requests to other hosts: {one["requests_to_other_hosts"]}.
""")
        )
    return "\n\n".join(said)
