"""MC dropout with a shared prefix against torch-uncertainty's `mc_dropout`: agreement first, then time and memory.

    PYTHONPATH=. .venv-peers/bin/python studies/peers/compare_mc_dropout.py --json FILE

Exit code 1 and no times when the sides do not compute the same thing.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import tomllib
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import torch

from steadyseg.core.errors import InputError
from steadyseg.studies.peers.mc_agreement import Disagreement, check
from steadyseg.studies.peers.mc_sides import MODEL, OURS, SIDES, Setup, build


@dataclass(frozen=True)
class Row:
    """One side at one N; ratios are to ours."""

    median_s: float
    p95_s: float
    time_ratio: float
    """Median over the rounds of (this side / ours in the same round), so that a slow minute cancels."""
    time_ratio_range: tuple[float, float]
    before_mb: int
    """Resident memory before the call, in a fresh process: libraries and weights."""
    peak_mb: int
    peak_ratio: float
    growth_ratio: float
    """Ratio of the two sides' peak - before: the memory that the call itself takes."""
    seconds: list[float]


def times(samples: int, setup: Setup, warm_ups: int, repeats: int) -> dict[str, list[float]]:
    """Seconds of every call by side, in rounds over all sides, each round beginning with the next one."""
    calls = {side: build(side, samples, setup)[0] for side in SIDES}
    names = list(SIDES)
    found: dict[str, list[float]] = {side: [] for side in SIDES}
    for turn in range(warm_ups + repeats):
        for side in names[turn % len(names) :] + names[: turn % len(names)]:
            started = time.perf_counter()
            calls[side]()
            if turn >= warm_ups:
                found[side].append(round(time.perf_counter() - started, 4))
    return found


def resident_mb(field: str) -> int:
    """VmRSS (now) or VmHWM (peak) of this process; getrusage would begin with the peak of the process that started
    it."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError as error:
        raise InputError("peak memory is read from /proc/self/status, which is missing here; use Linux") from error
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith(f"{field}:"))


def memory_here(side: str, samples: int, setup: Setup) -> tuple[int, int]:
    """MB resident before one call, and at the peak."""
    call, _ = build(side, samples, setup)
    before = resident_mb("VmRSS")
    call()
    return before, resident_mb("VmHWM")


def memory(side: str, samples: int, setup: Setup, threads: int) -> tuple[int, int]:
    """`memory_here` in a fresh process."""
    command = [sys.executable, __file__, "--memory-of", side, "--samples", str(samples), "--threads", str(threads)]
    command += ["--layout", setup.layout, *(["--places", *setup.places] if setup.places else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise InputError(f"{side} with N = {samples} ended with code {done.returncode}; is there memory for N frames?")
    before, peak = json.loads(done.stdout)
    return before, peak


def compare(samples: int, setup: Setup, warm_ups: int, repeats: int, threads: int) -> dict[str, Row]:
    """Prints and returns one row per side."""
    seconds = times(samples, setup, warm_ups, repeats)
    print(
        f"\nN = {samples:<7d}{'median s':>9s}{'p95 s':>8s}{'x time (least..most)':>22s}{'peak MB':>9s}{'x':>6s}", end=""
    )
    print(f"{'growth MB':>11s}{'x':>6s}")
    rows: dict[str, Row] = {}
    our_before, our_peak = memory(OURS, samples, setup, threads)
    for side in SIDES:
        before, peak = (our_before, our_peak) if side == OURS else memory(side, samples, setup, threads)
        ratios = np.array(seconds[side]) / np.array(seconds[OURS])
        median, p95 = (round(float(value), 3) for value in np.percentile(seconds[side], [50, 95]))
        ratio, least, most = (round(float(value), 3) for value in np.percentile(ratios, [50, 0, 100]))
        grown = round((peak - before) / (our_peak - our_before), 2)
        row = Row(median, p95, ratio, (least, most), before, peak, round(peak / our_peak, 2), grown, seconds[side])
        print(
            f"{side:11s}{median:9.3f}{p95:8.3f}{ratio:8.2f} "
            f"({least:.2f}..{most:.2f}){peak:11d}{row.peak_ratio:6.2f}{peak - before:11d}{grown:6.2f}",
            flush=True,
        )
        rows[side] = row
    return rows


def versions() -> dict[str, str]:
    """Versions of both sides and of their dependencies."""
    pyproject = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())
    found = {"steadyseg": str(pyproject["project"]["version"])}
    try:
        found |= {name: version(name) for name in ("torch-uncertainty", "torch", "lightning", "numpy")}
    except PackageNotFoundError as error:
        raise InputError(f"{error.name} is not installed here; see studies/peers/README.md") from error
    return found | {"python": platform.python_version()}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parser.add_argument("--samples", type=int, nargs="+", default=[10, 30], help="numbers of passes, a table each")
    parser.add_argument(
        "--threads", type=int, default=cores, help="threads of torch; by default all cores that this process may use"
    )
    parser.add_argument("--repeats", type=int, default=10, help="timed calls a side")
    parser.add_argument("--warm-ups", type=int, default=3, help="calls a side before the timed ones")
    parser.add_argument(
        "--layout", choices=["contiguous", "channels-last"], default="contiguous", help="memory layout of all sides"
    )
    parser.add_argument("--places", nargs="+", default=[], help="dropout places (enc1..5, dec6..9); the published ones")
    parser.add_argument("--peer-rate", type=float, help="another dropout rate for the peer: the check must then fail")
    parser.add_argument("--seed", type=int, default=0, help="seed of the masks")
    parser.add_argument("--json", type=Path, help="file for all figures")
    parser.add_argument("--memory-of", choices=list(SIDES), help=argparse.SUPPRESS)
    job = parser.parse_args()
    for name, least in {"threads": 1, "repeats": 1, "warm_ups": 0}.items():
        if getattr(job, name) < least:
            raise InputError(f"--{name.replace('_', '-')} must be {least} or more, got {getattr(job, name)}")
    if min(job.samples) < 1:
        raise InputError(f"--samples must be 1 or more, got {min(job.samples)}")
    if job.peer_rate is not None and not 0 < job.peer_rate < 1:
        raise InputError(f"--peer-rate must lie between 0 and 1, got {job.peer_rate}")
    if job.json and not job.json.parent.is_dir():
        raise InputError(f"--json {job.json}: there is no folder {job.json.parent}; make it first")
    return job


def main() -> None:
    job = parse()
    setup = Setup(job.layout, tuple(job.places), job.peer_rate)
    torch.set_num_threads(job.threads)
    torch.manual_seed(job.seed)
    if job.memory_of:
        print(json.dumps(memory_here(job.memory_of, job.samples[0], setup)))
        return
    report: dict[str, object] = {"versions": versions(), "model": MODEL, "machine": platform.platform()}
    report |= {"threads": job.threads, "warm_ups": job.warm_ups, "seed": job.seed, **asdict(setup), "sides": SIDES}
    print(", ".join(f"{name} {number}" for name, number in versions().items()))
    print(
        f"batch 1, fp32, {job.layout}, threads {job.threads}, {job.repeats} calls a side after {job.warm_ups} warm-ups"
    )
    report["agreement"] = check(setup)
    for samples in job.samples:
        rows = compare(samples, setup, job.warm_ups, job.repeats, job.threads)
        report[f"N={samples}"] = {side: asdict(row) for side, row in rows.items()}
        if job.json:  # after every table: the long ones may be interrupted
            job.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    try:
        with torch.inference_mode():
            main()
    except Disagreement as error:
        sys.exit(f"disagreement: {error}")  # exit code 1
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
