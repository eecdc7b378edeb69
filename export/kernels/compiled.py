"""How the CPU's kernels are compiled and share their work; importing this needs numba.

A kernel runs without the GIL and takes its pieces of work from a shared counter, so any number of threads may run it at
once on the same arrays. Inner loops are functions of their own over contiguous slices: only so does LLVM turn them into
SIMD code. numba's cache watches the file of a kernel alone: what a kernel calls belongs into its file, all but `take`.
"""

from collections.abc import Callable
from typing import Any

from numba import njit, types
from numba.extending import intrinsic

OPTIONS: dict[str, Any] = {"fastmath": {"nnan", "ninf", "nsz", "contract", "arcp"}, "error_model": "numpy"}
"""No reassociation: a sum over classes is made in the same order on every machine. No exception where 0 divides."""

loop = njit(inline="never", **OPTIONS)
"""Decorates an inner loop."""

COUNTER = types.Array(types.int64, 1, "C")


def _take(typing_context: Any, counter: Any) -> Any:
    """Atomically counter[0]++, the value before."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", data, context.get_constant(types.int64, 1), "monotonic")

    return types.int64(counter), generate


take: Any = intrinsic(_take)


def compile_kernel(function: Callable[..., None], arguments: tuple[Any, ...]) -> Callable[..., None]:
    """With the signature given nothing is compiled again for a read-only array."""
    try:
        return njit([types.void(*arguments)], cache=True, nogil=True, **OPTIONS)(function)
    except (RuntimeError, OSError):  # no folder can be written to, or the disk is full: compiled anew by every process
        return njit([types.void(*arguments)], nogil=True, **OPTIONS)(function)
