"""The number format of a network on OpenVINO: the fastest format with a known loss."""

import contextlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from steadyseg.core.errors import InputError
from steadyseg.core.method import Method
from steadyseg.core.model.model import Model
from steadyseg.core.system.files import cache_file, lock, no_link, write_atomic
from steadyseg.core.system.json_text import parse_json
from steadyseg.core.system.machine import available_cpus, cpu_name
from steadyseg.runtime.network_plan import StoredNetwork
from steadyseg.runtime.networks import FrameNetwork, cpu_has_bf16, openvino_name

TIMED_S = 0.4
"""The networks are called in turn for this many seconds, each at least three times."""
MARGIN = 0.95
"""Another format is taken only if its time is below this share of the first format's time. On a shared machine the
times of one network vary by some per cent."""
KEPT_NAME = "number-formats.json"
Times = dict[str, float]
"""Milliseconds of a frame, by number format."""
MEASURED: dict[str, Times] = {}
"""The times measured by this process."""


def choose_precision(precision: str, model: Model) -> tuple[str, str]:
    """Returns the number format of a checkpoint on OpenVINO, and the reason for the report, empty for fp32 and bf16 on
    request. InputError for int8 without its ranges.

    auto: the faster of bf16 (if the processor computes in it) and int8 (if the checkpoint shows a small loss). Which is
    faster depends on the network (docs/records/performance).
    """
    meta = model.meta
    if precision == "fp16":
        raise InputError("OpenVINO computes in fp32, bf16 or int8 on the CPU; use backend torch for precision fp16")
    number = resolve_precision(precision, meta.int8_is_proven)
    reason = "this processor has no bf16" if precision == "auto" else "asked for"
    if precision == "auto" and number == "bf16":
        native = "bf16", "this processor computes in bf16"
        number, reason = fastest(model, ("bf16", "int8")) if meta.int8_is_proven else native
    if number != "int8":
        return number, "" if reason == "asked for" else reason
    if not meta.int8:
        raise InputError(
            f"precision int8: {model.name} was not measured in it; steadyseg calibrate --int8 does, or omit it"
        )
    lacks = "; no familiarity, which has no scale in it" if meta.int8_lacks_familiarity else ""
    return number, f"int8: {reason}, and {meta.int8['labels_equal']:.1%} of the labels are fp32's{lacks}"


def resolve_precision(precision: str, int8_is_proven: bool = False) -> str:
    """Replaces auto: by bf16 if the processor computes in it (about 0.1 % of the labels differ from fp32's), else by
    int8 if proven, else by fp32."""
    if precision == "auto":
        return "bf16" if cpu_has_bf16() else "int8" if int8_is_proven else "fp32"
    return precision


def fastest(model: Model, formats: Sequence[str], kept: Path | None = None) -> tuple[str, str]:
    """Returns the fastest format here, and the times in words. They are measured once for a network on a machine and
    kept in the file `kept`, by default in the user's cache."""
    kept = kept or cache_file(KEPT_NAME)
    times = known_times(model, formats, kept)
    first, *others = formats
    best = min(others, key=lambda number: times[number])
    chosen = best if times[best] < MARGIN * times[first] else first
    return chosen, ", ".join(f"{number} {times[number]:.1f} ms" for number in formats) + " a frame here"


def known_times(model: Model, formats: Sequence[str], kept: Path) -> Times:
    """Returns the kept times, or measures them. Processes that start together wait for the first one, so that
    all of them compute in one format."""
    key = " ".join((model.sha256[:12], *formats, *machine()))
    with contextlib.ExitStack() as stack:
        try:
            kept.parent.mkdir(parents=True, exist_ok=True)
            held = stack.enter_context(open(kept.with_suffix(".lock"), "a", opener=no_link))
        except (OSError, InputError):  # an unwritable home: each process measures for itself
            held = None
        while held and not lock(held):
            time.sleep(0.1)
        known = read_kept(kept) | MEASURED
        times = known.get(key, {})
        if not all(isinstance(times.get(number), float) for number in formats):
            frame = np.random.default_rng(0).integers(0, 256, (1, model.meta.height, model.meta.width, 3), np.uint8)
            times = time_formats({number: network_alone(model, number) for number in formats}, frame)
            MEASURED[key] = times
            if held:
                with contextlib.suppress(OSError):
                    write_atomic(kept, json.dumps(known | {key: times}, indent=1).encode())
    return times


def network_alone(model: Model, number: str) -> FrameNetwork:
    """The network for frames of the model's size, in a number format, as mode dnn runs it."""
    return StoredNetwork(model, Method("dnn"), number).open(model.meta.height, model.meta.width)


def time_formats(networks: Mapping[str, FrameNetwork], frame: np.ndarray) -> Times:
    """Returns the median milliseconds of each network; they are called in turn, so a busy moment hits all of them."""
    times: dict[str, list[float]] = {number: [] for number in networks}
    for network in networks.values():
        network(frame)  # the first call allocates
    began = time.perf_counter()
    while time.perf_counter() - began < TIMED_S or len(next(iter(times.values()))) < 3:
        for number, network in networks.items():
            start = time.perf_counter()
            network(frame)
            times[number].append(1e3 * (time.perf_counter() - start))
    return {number: round(median(each), 2) for number, each in times.items()}


def machine() -> tuple[str, ...]:
    """Describes what the times depend on beside the network."""
    limits = (os.environ.get(name, "") for name in ("ONEDNN_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY"))
    return (cpu_name(), f"{available_cpus()} cores", openvino_name("").strip(), *filter(None, limits))


def read_kept(kept: Path) -> dict[str, Times]:
    """Returns the kept times; empty if the file is absent or damaged."""
    try:
        with open(kept, opener=no_link) as file:  # a pipe would be waited for
            found = parse_json(file.read())
    except (OSError, ValueError):
        return {}
    return {key: times for key, times in found.items() if isinstance(times, dict)} if isinstance(found, dict) else {}
