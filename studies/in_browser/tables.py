"""The tables of docs/studies/browser, from its record."""

from collections.abc import Iterator
from typing import Any

from steadyseg.studies.harness.tables import Tables, bind, read_record, table

Record = dict[str, Any]
RATE, FIRST_S, WASM_MB = 10.0, 5.0, 20.0
"""Targets: frames a second with two threads, seconds to the first result, and megabytes fetched."""


def tables() -> Tables:
    """The tables by their names in the page."""
    makers = {
        "sizes": sizes_table,
        "parity": parity_table,
        "familiarity": familiarity_table,
        "speed": speed_table,
        "soak": soak_table,
        "runs": runs_table,
    }
    return bind(read_record("browser"), makers)


def rows_of(record: Record, part: str) -> Iterator[tuple[str, Record]]:
    """(model, figures) of the models for which a part was measured."""
    return ((f"`{model}`", one[part]["rows"]) for model, one in record.items() if part in one)


def missed(is_met: bool, target: float) -> str:
    return "" if is_met else f" (target {target:g}, missed)"


def sizes_table(record: Record) -> str:
    header = ("page", "runtime", "one method's file", "street sample", "runtime for WebGPU", "WebAssembly in all")
    lines = []
    for model, one in rows_of(record, "sizes"):
        whole = one["page"] + one["runtime"] + one["models"]
        parts = (f"{one[key] / 1e6:.2f}" for key in ("page", "runtime", "models", "sample", "runtime_webgpu"))
        lines.append([model, *parts, f"{whole / 1e6:.1f}{missed(whole <= WASM_MB * 1e6, WASM_MB)}"])
    return table(("MB sent", *header), lines)


def parity_table(record: Record) -> str:
    """The page against ONNX Runtime in Python, on the same frames."""
    lines = []
    for model, rows in rows_of(record, "parity"):
        for name, row in rows.items():
            equal, differ = f"{100 * row['labels_equal']:.3f} %", f"{100 * row['map_pixels_differing']:.3f} %"
            lines.append([model, name, str(row["frames"]), equal, str(row["largest_map_difference"]), differ])
    titles = ("provider", "frames", "labels equal, least", "maps apart, most of 255", "map pixels that differ")
    return table(("against ONNX Runtime in Python", *titles), lines)


def familiarity_table(record: Record) -> str:
    """Differences of familiarity and expected accuracy, of networks with novelty statistics."""
    lines = [
        [
            model,
            name,
            f"{min(row['familiarities']):.2f} to {max(row['familiarities']):.2f}",
            f"{row['familiarity_apart']:.4f}",
            f"{row['accuracy_apart']:.4f}",
        ]
        for model, rows in rows_of(record, "parity")
        for name, row in rows.items()
        if "familiarities" in row
    ]
    return table(("the same frames", "provider", "familiarity", "apart, most", "expected accuracy apart, most"), lines)


def speed_table(record: Record) -> str:
    lines = []
    for model, rows in rows_of(record, "speed"):
        for name, row in rows.items():
            rate, first = row["frames_per_s"], row["first_result_s"]
            age = f"{row['age_ms_p50']:.0f} / {row['age_ms_p95']:.0f}"
            shown = f"{rate:.1f}{missed(rate >= RATE, RATE)}"
            lines.append([model, name, shown, age, f"{first:.1f}{missed(first <= FIRST_S, FIRST_S)}"])
    return table(("camera, smoothed", "provider", "frames/s", "age ms, p50 / p95", "first result, s"), lines)


def soak_table(record: Record) -> str:
    """Memory over a long run at the camera, and over 20 stops and starts of the sample."""
    lines = []
    for model, one in rows_of(record, "soak"):
        after = one["after_20_starts"]
        heap, held = (", ".join(f"{value:.0f}" for value in one["thirds"][key]) for key in ("heap_mb", "chromium_mb"))
        starts = f"{after['chromium_mb_before']:.0f}, {after['chromium_mb']:.0f}"
        counts = (f"{one['seconds'] / 60:.0f}", str(one["shown"]))
        lines.append([model, *counts, heap, held, starts, str(after["workers"]), str(one["requests_to_other_hosts"])])
    header = (
        "model",
        "minutes",
        "results",
        "JavaScript heap at most, MB, by third",
        "all of Chromium at most, MB, by third",
        "all of Chromium before and after 20 starts, MB",
        "workers after them",
        "requests to other hosts",
    )
    return table(header, lines)


def runs_table(record: Record) -> str:
    """The commit and the processor of each part."""
    lines = [
        [f"`{model}`", part, found["made"]["commit"], found["made"]["processor"]]
        for model, one in record.items()
        for part, found in one.items()
    ]
    return table(("model", "part", "commit", "processor"), lines)
