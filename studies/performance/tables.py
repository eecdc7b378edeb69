"""The tables of docs/records/performance, from its record."""

from typing import Any

from steadyseg.studies.harness.tables import Tables, bind, read_record, table

Record = dict[str, Any]
MODELS = ("camvid-unet-s", "camvid-realtime", "camvid-mobile")
ROWS = {
    "bare_plain": "network alone, without spatial smoothing",
    "bare": "network alone",
    "dnn": "with all maps and familiarity",
    "vq_dnn": "VQ-DNN (published rule), all maps and familiarity",
    "vq_dnn_motion": "VQ-DNN along the motion (default), all maps and familiarity",
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
    "published": "the network on the last 6 frames again",
    "end_to_end_labels": "H.264 file to labels and maps",
    "end_to_end_video": "H.264 file to side-by-side file",
}
WHOLE = {"bare": "network alone", "vq_dnn_motion": "every frame", "end_to_end_labels": "file to labels and maps"}
SPARSE = {"every_2": "every 2 (ratio)", "every_3": "every 3", "every_auto": "auto"}
FORMAT_ROWS = {"bare": "network alone", "vq_dnn_motion": "the default", "end_to_end_labels": "file to labels and maps"}


def tables() -> Tables:
    """The tables by their names in the page."""
    makers = {"machine": machine_table, "ratios": ratios_table, "rows": rows_table, "formats": formats_table}
    every = bind(read_record("performance", "every.json"), {"every": every_table, "stages": stages_table})
    return {**bind(read_record("performance"), makers), **every}


def every_table(record: Record) -> str:
    """Frames a second with the network on some frames, and their ratio to every frame, by `steadyseg bench`."""
    lines = []
    for model, one in record.items():
        rates = {row: found["frames_per_s"] for row, found in one["rows"].items()}
        every = [f"{rates[row]:.1f} ({rates[row] / rates['vq_dnn_motion']:.2f})" for row in SPARSE]
        lines.append([model, one["backend"].split()[-1], *(f"{rates[row]:.1f}" for row in WHOLE), *every])
    return table(["network", "format", *WHOLE.values(), *SPARSE.values()], lines)


def stages_table(record: Record) -> str:
    """Milliseconds of a frame of the default method by stage, and the speed against the network alone."""
    lines = []
    for model, one in record.items():
        alone, whole = (one["rows"][row] for row in ("bare", "vq_dnn_motion"))
        spent = {stage: whole["stages_ms"][stage] for stage in ("motion", "network", "smoothing")}
        times = (alone["median_ms"], *spent.values(), whole["median_ms"])
        lines.append([model, *(f"{ms:.2f}" for ms in times), f"{alone['median_ms'] / whole['median_ms']:.2f}"])
    stages = ["network alone", "motion", "network with familiarity", "mean and maps", "whole frame"]
    return table(["network", *stages, "speed, of the network alone"], lines)


def machine_table(record: Record) -> str:
    """Machine, backend, versions and commit of each network's run."""
    lines = []
    for model in MODELS:
        one, speed = record[model], record[model]["arithmetic"]
        versions = ", ".join(f"{name} {number}" for name, number in one["versions"].items() if number)
        machine = f"{one['cores']} cores of {one['cpu']}"
        seconds, products = one["seconds_per_row"], speed["product_gflops_per_s"][speed["compared_with"]]
        size = "x".join(map(str, one["size"]))
        cells = [machine, one["backend"], size, f"{seconds:g}", f"{products:.0f}", one["commit"], versions]
        lines.append([model, *cells])
    header = ["network", "machine", "backend", "size", "s a row", "GFLOP/s of 1024 x 1024 products", "commit"]
    return table([*header, "versions"], lines)


def ratios_table(record: Record) -> str:
    by_model = {model: {ratio["name"]: ratio for ratio in record[model]["ratios"]} for model in MODELS}
    lines = [
        [ratio["meaning"], *(format_ratio(by_model[model].get(name)) for model in MODELS)]
        for name, ratio in by_model[MODELS[0]].items()
    ]
    return table(["what", *MODELS], lines)


def format_ratio(ratio: Record | None) -> str:
    """The value, and its target where it has one."""
    if ratio is None:
        return "-"
    if ratio["target"] is None:
        return f"{ratio['value']:.3f}"
    missed = ", missed" if ratio["value"] < ratio["target"] else ""
    return f"{ratio['value']:.3f} (target {ratio['target']:g}{missed})"


def rows_table(record: Record) -> str:
    lines = [
        [meaning, *(cell for model in MODELS for cell in timing(record[model]["rows"].get(name)))]
        for name, meaning in ROWS.items()
        if any(name in record[model]["rows"] for model in MODELS)
    ]
    return table(["row", *(title for model in MODELS for title in (f"{model}: median ms", "p95", "calls"))], lines)


def timing(row: Record | None) -> list[str]:
    return [f"{row['median_ms']:.1f}", f"{row['p95_ms']:.1f}", str(row["calls"])] if row else ["-"] * 3


def formats_table(record: Record) -> str:
    """Frames a second by number format."""
    formats = record["formats"]
    columns = [(model, row) for model in MODELS for row in FORMAT_ROWS]
    lines = [
        [processor, number, *(f"{formats[model]['processors'][processor][number][row]:.1f}" for model, row in columns)]
        for processor, numbers in formats[MODELS[0]]["processors"].items()
        for number in numbers
    ]
    header = ["processor", "format", *(f"{model}: {FORMAT_ROWS[row]}" for model, row in columns)]
    commits = [cell for model in MODELS for cell in (formats[model]["commit"], *[""] * (len(FORMAT_ROWS) - 1))]
    return table(header, [*lines, ["commit", "", *commits]])
