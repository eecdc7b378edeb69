"""The result of a bench: the record for the JSON file, and the tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from steadyseg.app.console import Console
from steadyseg.core.stage_clock import StageClock
from steadyseg.studies.performance.rows import ROWS, STEP
from steadyseg.studies.performance.timing import Timing

BASES = {
    "bare": "bare_plain",
    "vq_bnn": "bare_plain",
    **{name: "bare" for name in ROWS if name not in ("bare_plain", "bare", "vq_bnn")},
    "step": "bare",
}
"""Row -> the row that its throughput is a share of in the table of rows."""


@dataclass(frozen=True)
class Ratio:
    """Throughput over throughput: above 1 the row is the faster one."""

    row: str
    base: str
    meaning: str
    target: float | None = None
    targets: Mapping[str, float] | None = None
    """Targets of single models, by name."""

    def target_of(self, model: str) -> float | None:
        return (self.targets or {}).get(model, self.target)


RATIOS = (
    Ratio("bare", "bare_plain", "with spatial smoothing / without", 0.93),
    Ratio(
        "vq_dnn", "bare", "VQ-DNN with all maps and familiarity / the network alone", 0.95, {"camvid-realtime": 0.90}
    ),
    Ratio("vq_dnn_motion", "bare", "VQ-DNN that follows motion / the network alone"),
    *(
        Ratio(
            f"every_{n}",
            "vq_dnn_motion",
            f"the network on every {n} frames / on every frame".replace("every auto", "some"),
        )
        for n in ("2", "3", "auto")
    ),
    Ratio("vq_bnn", "bare_plain", "VQ-BNN, smoothing and maps / the plain network alone", 0.90),
    Ratio("dnn", "bare", "all maps and familiarity / the network alone"),
    Ratio("vq_dnn", "dnn", "with temporal smoothing / without"),
    Ratio("vq_bnn", "mc_30", "VQ-BNN / MC dropout of 30 passes", 28.0),
    Ratio("vq_bnn", "published", "VQ-BNN / the network on 6 frames again", 5.5),
    Ratio("vq_dnn", "naive_deque", "VQ-DNN with all maps / a deque in torch"),
    Ratio("mc_reuse_5", "mc_whole_5", "5 passes with a shared prefix / whole ones"),
    Ratio("end_to_end_labels", "bare", "file to labels / the network alone", 0.90),
    Ratio("end_to_end_video", "bare", "file to file / the network alone"),
    Ratio("start", "bare", "a new process to its first maps / the network alone"),
    Ratio("step", "bare", "the file's whole step / the network alone"),
)


def rows_record(timings: Sequence[Timing]) -> dict[str, Any]:
    """{row: what was measured}; times are per frame."""
    by_name = {timing.row.name: timing for timing in timings}
    record = {}
    for name, timing in by_name.items():
        base = BASES.get(name)
        record[name] = {
            "backend": timing.row.backend,
            "calls": len(timing.samples_ms),
            "frames_per_call": timing.row.frames,
            "median_ms": round(timing.median_ms, 4),
            "p95_ms": round(timing.p95_ms, 4),
            "frames_per_s": round(timing.frames_per_s, 3),
            "base": base if base in by_name else None,
            "of_base": four_digits(by_name[base].median_ms / timing.median_ms) if base in by_name else None,
            "stages_ms": stages_ms(timing.row.clock),
        }
    return record


def stages_ms(clock: StageClock | None) -> dict[str, float] | None:
    """{stage: median ms}; None without stages. With carried maps, a stage's median is over the frames that had it."""
    return {name: times["latency_p50_ms"] for name, times in clock.summary().items()} if clock else None


def four_digits(ratio: float) -> float:
    """Rounds to four significant digits: four decimals keep only one digit of 0.003."""
    return float(f"{ratio:.4g}")


def ratios_record(rows: dict[str, Any], model: str) -> list[dict[str, Any]]:
    """Every ratio whose two rows were run."""
    return [
        {
            "name": f"{ratio.row}/{ratio.base}",
            "meaning": ratio.meaning,
            "value": four_digits(rows[ratio.base]["median_ms"] / rows[ratio.row]["median_ms"]),
            "target": ratio.target_of(model),
        }
        for ratio in RATIOS
        if ratio.row in rows and ratio.base in rows
    ]


def arithmetic_record(
    rows: dict[str, Any], gflops: dict[str, float], rates: dict[str, float], rate_of: str
) -> dict[str, Any]:
    """The arithmetic of each bare row as a share of the machine's rate in that backend (`rate_of`, a key of
    `rates`)."""
    bare = {}
    for name, work in gflops.items():
        achieved = work / rows[name]["median_ms"] * 1e3
        share = round(achieved / rates[rate_of], 4)
        bare[name] = {"gflops_per_frame": work, "gflops_per_s": round(achieved, 1), "share_of_products": share}
    return {"product_gflops_per_s": rates, "compared_with": rate_of, "rows": bare}


def print_bench(record: dict[str, Any], console: Console) -> None:
    """The record as tables."""
    width, height = record["size"]
    console.print(
        f"{record['model']} at {width}x{height}, batch 1, {record['backend']} on {record['device']} ({record['why']})"
    )
    console.print(f"{record['cpu']}, {record['cores']} core(s); clip: {record['clip']['name']}")
    console.print(", ".join(f"{name} {number or 'absent'}" for name, number in record["versions"].items()))
    for note in record["notes"]:
        console.print(f"note: {note}")
    if record["rows"]:
        console.print(_rows_table(record["rows"]))
        for name in record["rows"]:
            stages = record["rows"][name]["stages_ms"] or {}
            spent = ", ".join(f"{stage} {ms:.2f} ms" for stage, ms in stages.items())
            console.print(f"{name}: {ROWS.get(name, STEP)}{spent and f'; {spent}'}", soft_wrap=True)
    if record["ratios"]:
        console.print(_ratios_table(record["ratios"]))
    if record["arithmetic"]:
        _print_arithmetic(record["arithmetic"], console)
    _print_memory(record["memory"], console)


def _rows_table(rows: dict[str, Any]) -> Table:
    table = Table("row", "calls", "median ms", "p95 ms", "frames/s", "frames/s of its base")
    for name, row in rows.items():
        share = "-" if row["base"] is None else f"{row['of_base']:.3f} times {row['base']}"
        times = [f"{row[key]:.2f}" for key in ("median_ms", "p95_ms", "frames_per_s")]
        table.add_row(name, str(row["calls"]), *times, share)
    return table


def _ratios_table(ratios: list[dict[str, Any]]) -> Table:
    table = Table("throughput ratio", "what", "measured, frames/s : frames/s", "target")
    for ratio in ratios:
        target = "-" if ratio["target"] is None else f">= {ratio['target']:g}"
        table.add_row(ratio["name"], ratio["meaning"], f"{ratio['value']:.3f}", target)
    return table


def _print_arithmetic(arithmetic: dict[str, Any], console: Console) -> None:
    rates = ", ".join(f"{name} {rate:.0f}" for name, rate in arithmetic["product_gflops_per_s"].items())
    console.print(f"products of 1024 x 1024 matrices, GFLOP/s: {rates}")
    for name, row in arithmetic["rows"].items():
        console.print(
            f"{name}: {row['gflops_per_frame']:.2f} GFLOP a frame, {row['gflops_per_s']:.0f} GFLOP/s, "
            f"{row['share_of_products']:.0%} of the products' in {arithmetic['compared_with']}"
        )


def _print_memory(memory: dict[str, Any], console: Console) -> None:
    words = {
        "peak_rss_bytes": "peak resident (all rows)",
        "state_bytes": "temporal state",
        "naive_deque_bytes": "the naive deque's",
    }
    known = [f"{what} {_mb(memory[key])}" for key, what in words.items() if memory[key] is not None]
    console.print(f"memory: {', '.join(known)}")


def _mb(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
