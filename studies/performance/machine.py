"""The machine that a bench ran on: versions of packages, and its rate of arithmetic."""

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import torch

from steadyseg.core.system.machine import training_precision
from steadyseg.studies.performance.timing import Budget, Row, measure

SIDE = 1024
"""Side of the matrices: 2.1 GFLOP, 20 ms and less on two cores, and 12 MB in fp32, of which products are made in
blocks."""
NUMBERS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def versions() -> dict[str, str | None]:
    """Versions of the packages that decide the speed; None where one is not installed."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name, packages in {
        "torch": ("torch",),
        "openvino": ("openvino",),
        "onnxruntime": ("onnxruntime-gpu", "onnxruntime"),
        "numba": ("numba",),
        "numpy": ("numpy",),
    }.items():
        found[name] = next(filter(None, map(_version, packages)), None)
    return found


def matrix_rates(seconds: float, precision: str, device: str, *, on_openvino: bool) -> dict[str, float]:
    """{backend: GFLOP/s} of the product of two 1024 x 1024 matrices, the median; a multiplication and an addition are
    two.

    torch's 16-bit formats only where they are asked for or computed fast: emulated (held to AVX2), the warm-up and five
    calls of bf16 took a minute.
    """
    wanted = {"fp32", training_precision(torch.device(device)), precision}
    rows = [_torch_product(one, number, device) for one, number in NUMBERS.items() if one in wanted]
    if on_openvino:
        rows.append(_openvino_product(precision))
    timings = measure(rows, Budget(seconds=min(1.0, seconds)))
    return {timing.row.backend: round(2 * SIDE**3 / timing.median_ms / 1e6, 1) for timing in timings}


def _torch_product(precision: str, number: torch.dtype, device: str) -> Row:
    left, right = (torch.rand(SIDE, SIDE, device=device).to(number) for _ in range(2))

    def run(count: int) -> None:
        for _ in range(count):
            torch.mm(left, right)
        if device == "cuda":
            torch.cuda.synchronize()

    return Row(f"torch {precision} product", run, f"torch {precision}")


def _openvino_product(precision: str) -> Row:
    import openvino
    from openvino import opset13

    from steadyseg.runtime.networks import OpenVinoNetwork

    picture = np.random.default_rng(0).random((SIDE, SIDE), np.float32)
    entering: Any = opset13.parameter([SIDE, SIDE], np.float32)
    product = opset13.matmul(entering, opset13.constant(picture), False, False)
    network = OpenVinoNetwork(openvino.Model([product], [entering]), precision)
    return Row(
        f"openvino {precision} product", lambda count: [network(picture) for _ in range(count)], f"openvino {precision}"
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
