"""Speed of networks before they are trained: `architectures` of docs/studies/performance/record.json.

    python -m steadyseg.studies.performance.architectures [--row-seconds 3]

Random weights, no dropout. Each processor's rows run in turn, a call of each, until each has had its seconds.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import nn

from steadyseg.app.models import cost_of
from steadyseg.core.dropout import set_dropout_active
from steadyseg.core.errors import InputError
from steadyseg.core.model.int8 import measure_ranges, round_convolutions
from steadyseg.export.run.networks import OnnxRuntimeNetwork, OpenVinoNetwork, openvino_model
from steadyseg.seg.networks.build import build_network
from steadyseg.seg.options import SmpOptions, UNetOptions
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.study import Cache, exit_code, origin
from steadyseg.studies.performance.formats import PROCESSORS
from steadyseg.studies.performance.measured_bench import PAGE, PROJECT, wait_for_quiet

HEIGHT, WIDTH, CLASSES = 360, 480, 11
HALF = SmpOptions(decoder_channels=(128, 64, 32, 24, 16), head_stride=2, decoder_dropout=0.0)
SMALL = replace(HALF, decoder_channels=(64, 32, 24, 16, 16))
TINY = replace(HALF, decoder_channels=(48, 32, 16, 12, 12))
REGNET = replace(HALF, encoder="tu-regnetx_002")
UNET = UNetOptions(dropout=0.0)
CANDIDATES: dict[str, UNetOptions | SmpOptions] = {
    "U-Net, width 16": UNET,
    "U-Net, width 16, relu6": replace(UNET, prob="relu6"),
    "U-Net, width 16, no smoothing": replace(UNET, smoothing=False),
    "U-Net, width 8, relu6": replace(UNET, channels=8, prob="relu6"),
    "RegNetX-002": REGNET,
    "RegNetX-002, relu6": replace(REGNET, encoder_prob="relu6"),
    "RegNetX-002, no smoothing": replace(REGNET, encoder_smoothing=False),
    "RegNetX-002, full size": replace(REGNET, head_stride=1, encoder_prob="relu6"),
    **{
        f"{name}, {word} decoder": replace(decoder, encoder=f"tu-{name}")
        for name in ("repghostnet_050", "lcnet_050", "lcnet_075", "mobilenetv3_small_050", "mobilenetv3_small_075")
        for word, decoder in (("small", SMALL), ("tiny", TINY))
    },
    "RegNetX-002, small decoder": replace(SMALL, encoder="tu-regnetx_002", encoder_prob="relu6"),
}
Run = Callable[[np.ndarray], Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--row-seconds", type=float, default=3.0, help="seconds that each row is timed")
    parser.add_argument("--formats", nargs="+", help="time these here and print JSON")
    given = parser.parse_args()
    if given.formats:
        json.dump(time_here(given.formats, given.row_seconds), sys.stdout)
        return 0
    return exit_code("architectures", lambda: run(given.row_seconds))


def run(seconds: float) -> None:
    cache = Cache(PAGE / "record.json")
    found = {
        processor: time_there((*formats, "onnxruntime"), environment, seconds)
        for processor, (environment, formats) in PROCESSORS.items()
    }
    costs = {
        name: dict(zip(("size", "params", "gflops"), cost_of(build(options), HEIGHT, WIDTH), strict=True))
        for name, options in CANDIDATES.items()
    }
    cache.record["architectures"] = {**origin(), "seconds_per_row": seconds, "costs": costs, "processors": found}
    cache.write()
    write_page("performance")


def time_there(formats: tuple[str, ...], environment: dict[str, str], seconds: float) -> dict[str, dict[str, float]]:
    """Times the networks in a process of its own, held to the instructions of a processor."""
    wait_for_quiet()
    command = [sys.executable, "-m", __spec__.name, "--row-seconds", str(seconds), "--formats", *formats]
    answer = subprocess.run(command, cwd=PROJECT, env=os.environ | environment, capture_output=True, text=True)
    if answer.returncode:
        raise InputError(f"timing failed: {answer.stderr.strip().splitlines()[-1]}")
    return dict(json.loads(answer.stdout))


def build(options: UNetOptions | SmpOptions) -> nn.Module:
    torch.manual_seed(0)
    network = build_network("unet" if isinstance(options, UNetOptions) else "smp", options, CLASSES)
    set_dropout_active(network, False)
    return network.eval()


def time_here(formats: list[str], seconds: float) -> dict[str, dict[str, float]]:
    """Median milliseconds by network and format."""
    frame = np.random.default_rng(0).standard_normal((1, 3, HEIGHT, WIDTH)).astype(np.float32)
    runs = {
        (name, form): opened(build(options), form, frame) for name, options in CANDIDATES.items() for form in formats
    }
    times: dict[tuple[str, str], list[float]] = {row: [] for row in runs}
    while unfinished := [row for row in runs if sum(times[row]) < seconds]:
        for row in unfinished:
            began = time.perf_counter()
            runs[row](frame)
            times[row].append(time.perf_counter() - began)
    return {name: {form: round(1000 * median(times[name, form]), 2) for form in formats} for name in CANDIDATES}


@torch.no_grad()
def opened(network: nn.Module, form: str, frame: np.ndarray) -> Run:
    """The network in a number format, warmed up."""
    example = torch.from_numpy(frame)
    if form == "onnxruntime":
        file = BytesIO()
        torch.onnx.export(network, (example,), file, input_names=["frame"], dynamo=False)  # type: ignore[arg-type]
        runner: Run = OnnxRuntimeNetwork(file.getvalue(), "fp32")
    else:
        if form == "int8":
            round_convolutions(network, measure_ranges(network, [example]))
        runner = OpenVinoNetwork(openvino_model(network, (example,)), form)
    for _ in range(3):
        runner(frame)
    return runner


if __name__ == "__main__":
    sys.exit(main())
