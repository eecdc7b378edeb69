"""docs/studies/performance: tables from docs/studies/performance/record.json, what explains them, and what was measured
by hand."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.system.files import write_atomic
from studies.harness.document import fill, section, table

MODELS = ("camvid-unet-s", "camvid-realtime", "camvid-mobile")
SOAKED = "camvid-realtime"
FOLDER = Path(__file__).parent
ROWS = {
    "bare_plain": "network alone, without spatial smoothing",
    "bare": "network alone",
    "dnn": "with all maps and novelty",
    "vq_dnn": "VQ-DNN (published rule), all maps and novelty",
    "vq_dnn_motion": "VQ-DNN along the motion (default), all maps and novelty",
    "vq_bnn": "VQ-BNN, all maps",
    "mc_5": "MC dropout, 5 whole passes",
    "mc_10": "MC dropout, 10",
    "mc_30": "MC dropout, 30",
    "mc_50": "MC dropout, 50",
    "mc_whole_5": "torch fp32: 5 whole passes",
    "mc_reuse_5": "torch fp32: 5 passes that share their prefix",
    "mc_reuse_10": "torch fp32: 10",
    "mc_reuse_30": "torch fp32: 30",
    "mc_reuse_50": "torch fp32: 50",
    "naive_deque": "one pass and a deque of 6 maps, torch",
    "published": "the published way, 6 passes a frame",
    "end_to_end_labels": "H.264 file to labels and maps",
    "end_to_end_video": "H.264 file to side-by-side file",
}
FORMAT_ROWS = {"bare": "network alone", "vq_dnn_motion": "the default", "end_to_end_labels": "file to labels and maps"}
MISSING = (
    "## Speed of the networks that ship\nNot measured at this commit. On a machine that does nothing else `python -m "
    "studies.performance` measures it and\nwrites docs/studies/performance/record.json, from which this section is made."
)


def write_document(page: Path) -> None:
    write_atomic(page / "README.md", document(page).encode())


def document(page: Path) -> str:
    """The whole text."""
    head, explained, by_hand = (FOLDER / "text.md").read_text().split("\n---\n")
    path = page / "record.json"
    records: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    throughput = json.loads((page.parent / "results" / "throughput.json").read_text())
    measured = [MISSING]
    if all(model in records for model in MODELS):
        measured = [machine(records), ratios_table(records), rows_table(records), memory(records)]
    if "formats" in records:
        measured.append(formats_table(records["formats"]))
    if "architectures" in records:
        measured.append(architectures_table(records["architectures"]))
    parts = [fill(head, lambda name: figure(throughput, name)), *measured, wrap_all(explained), wrap_all(by_hand)]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def wrap_all(text: str) -> str:
    """Text without figures of ours to fill in."""
    return fill(text, lambda name: name)


def figure(record: dict[str, Any], name: str) -> str:
    """`{vq_dnn}`: median ms of a row; `{vq_dnn > vq_dnn_motion}`: what the second costs more; `{calls vq_bnn}`."""
    rows = record["rows"]
    if name.startswith("calls "):
        return str(rows[name.removeprefix("calls ")]["calls"])
    if name in record:
        return str(record[name])
    first, _, second = name.partition(" > ")
    milliseconds = rows[first]["median_ms"] if not second else rows[second]["median_ms"] - rows[first]["median_ms"]
    return f"{milliseconds:.1f}"


def machine(records: dict[str, Any]) -> str:
    one = records[MODELS[0]]
    versions = ", ".join(f"{name} {number}" for name, number in one["versions"].items() if number)
    arithmetic = [records[model]["arithmetic"] for model in MODELS]
    products = [found["product_gflops_per_s"][found["compared_with"]] for found in arithmetic]
    words = (
        f"{one['cores']} cores of a {one['cpu']}, {one['executor']}, batch 1, "
        f"{'x'.join(map(str, one['size']))}; {versions}; "
        f"{runs_of(records, MODELS)}. Rows of a network run in turn, so a ratio compares neighbours in time. "
        f"Products of "
        f"1024 x 1024 matrices: {min(products):.0f} to {max(products):.0f} GFLOP/s. Virtual machines of one "
        f"name differ."
    )
    return f"## Speed of the networks that ship\n{words}"


def runs_of(records: dict[str, Any], models: Sequence[str]) -> str:
    """Each network was measured in a run of its own."""
    runs = [
        f"`{model}` at commit {records[model]['commit']}, {records[model]['seconds_per_row']:g} s a row"
        for model in models
    ]
    return ", ".join(runs)


def ratios_table(records: dict[str, Any]) -> str:
    by_model = {model: {ratio["name"]: ratio for ratio in records[model]["ratios"]} for model in MODELS}
    lines = [
        [ratio["meaning"], *(format_ratio(by_model[model].get(name)) for model in MODELS)]
        for name, ratio in by_model[MODELS[0]].items()
    ]
    return section("Throughput ratios", "Above 1 the first is the faster.", table(["what", *MODELS], lines))


def format_ratio(ratio: dict[str, Any] | None) -> str:
    """The value, and its target where it has one."""
    if ratio is None:
        return "-"
    if ratio["target"] is None:
        return f"{ratio['value']:.3f}"
    missed = ", missed" if ratio["value"] < ratio["target"] else ""
    return f"{ratio['value']:.3f} (target {ratio['target']:g}{missed})"


def rows_table(records: dict[str, Any]) -> str:
    lines = [
        [meaning, *(cell for model in MODELS for cell in timing(records[model]["rows"].get(name)))]
        for name, meaning in ROWS.items()
        if any(name in records[model]["rows"] for model in MODELS)
    ]
    header = ["row", *(title for model in MODELS for title in (f"{model}: median ms", "p95", "calls"))]
    return section("Where a frame's time goes", "A median of few calls is uncertain.", table(header, lines))


def architectures_table(record: dict[str, Any]) -> str:
    columns = [
        (processor, form) for processor, rows in record["processors"].items() for form in next(iter(rows.values()))
    ]
    lines = [
        [
            name,
            cost["params"],
            cost["gflops"],
            *(f"{record['processors'][processor][name][form]:.1f}" for processor, form in columns),
        ]
        for name, cost in record["costs"].items()
    ]
    words = (
        "Networks alone with random weights, no dropout, 480x360, median ms, two cores; SMP U-Nets with logits at half "
        "size unless named, and ours at full size; spatial smoothing with tanh unless named; decoders (128, "
        "64, 32, 24), "
        "*small* (64, 32, 24, 16), *tiny* (48, 32, 16, 12). "
        f"A call of each in turn, {record['seconds_per_row']:g} s each, so caches are cold and a network "
        f"alone is faster; "
        f"onnxruntime is fp32; commit {record['commit']}."
    )
    head = ["network", "parameters", "GFLOP", *(f"{processor}: {form}" for processor, form in columns)]
    return section("Networks before training", words, table(head, lines))


def formats_table(formats: dict[str, Any]) -> str:
    """Frames a second by number format."""
    models = [model for model in MODELS if model in formats]
    one = formats[models[0]]
    columns = [(model, row) for model in models for row in FORMAT_ROWS]
    lines = [
        [processor, number, *(f"{formats[model]['processors'][processor][number][row]:.1f}" for model, row in columns)]
        for processor, numbers in one["processors"].items()
        for number in numbers
    ]
    words = (
        f"Frames a second, two cores; {runs_of(formats, models)}. *Held to AVX2*: the same "
        "cores without AVX-512, VNNI and bf16 (ONEDNN_MAX_CPU_ISA, ATEN_CPU_CAPABILITY); clock and memory "
        "stay this machine's."
    )
    header = ["processor", "format", *(f"{model}: {FORMAT_ROWS[row]}" for model, row in columns)]
    return section("Number formats by processor", words, table(header, lines))


def timing(row: dict[str, Any] | None) -> list[str]:
    return [f"{row['median_ms']:.1f}", f"{row['p95_ms']:.1f}", str(row["calls"])] if row else ["-"] * 3


def memory(records: dict[str, Any]) -> str:
    """Memory of the temporal state, and of a long run."""
    states = ", ".join(f"{records[model]['memory']['state_bytes'] / 1e6:.1f} MB (`{model}`)" for model in MODELS)
    naive = records[MODELS[0]]["memory"]["naive_deque_bytes"]
    words = [
        f"Temporal state: {states}" + (f"; a deque of 6 maps of `{MODELS[0]}`: {naive / 1e6:.1f} MB." if naive else ".")
    ]
    if soak := records[SOAKED].get("soak"):
        words.append(
            f"Soak: {soak['frames']} frames of `{SOAKED}`: resident memory {soak['warm'] / 1e6:.1f} MB after the "
            f"warm-up, "
            f"{soak['end'] / 1e6:.1f} MB at the end, {soak['largest'] / 1e6:.1f} MB at most."
        )
    return f"## Memory\n{' '.join(words)}"
