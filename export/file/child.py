"""Checks of strangers' graphs in a child process with limits of memory and time.

onnx and protobuf are C++ that trusts its input. A negative `batch_dims` of GatherND writes past a list and ends the
process; 16 MiB of empty nodes become 1.2 GB once parsed. A child that dies gives one line of InputError.
"""

import ast
import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from typing import TypeVarTuple

from steadyseg.core.errors import InputError, printable

Values = TypeVarTuple("Values")
MEMORY, TIMES = 2**32, 8
"""Address space beyond the imports: MEMORY bytes, and TIMES the file, of which parsers and runtimes hold copies. One
frame of the papers' U-Net takes 1.5 GB for a picture of 1024x2048."""
CPU_S = WALL_S = 600
"""Limits of time; a file of 50 passes of the papers' U-Net takes a minute and a half."""
REFUSED = 3
"""Exit code of an InputError, whose line is the output; Python itself takes 1 and 2."""


def run_limited(task: Callable[[bytes, str, *Values], bytes], data: bytes, name: str, *values: *Values) -> bytes:
    """Returns task(data, name, *values), computed in the child; `values` are whole numbers.

    InputError, with the `name` of the file, where the task refuses the file or does not end within the limits.
    """
    command = [sys.executable, "-P", "-m", __name__, task.__module__, task.__name__, repr((name, *values))]
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    environment = os.environ | {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}  # more threads take address space
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=WALL_S, env=environment, check=False)
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{name}: its check took longer than {WALL_S} s; export it again") from error
    if done.returncode == REFUSED:
        raise InputError(done.stdout.decode())
    if done.returncode != 0:
        last = (done.stderr.decode(errors="replace").strip() or "no message").splitlines()[-1]
        end = f"signal {-done.returncode}" if done.returncode < 0 else printable(last)[:200]
        raise InputError(f"{name}: its check ended by {end}, so the file is damaged or made to harm; export it again")
    return done.stdout


def limit(size: int) -> None:
    """Limits memory and CPU time of this process for a file of `size` bytes; only Linux enforces the memory limit."""
    try:
        import resource
    except ImportError:  # Windows
        return
    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_CPU: CPU_S}
    if sys.platform == "linux":
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        limits[resource.RLIMIT_AS] = used + MEMORY + TIMES * size
    for kind, most in limits.items():
        given = resource.getrlimit(kind)[1]  # a stricter one of the parent stays
        resource.setrlimit(kind, (most if given == resource.RLIM_INFINITY else min(most, given),) * 2)


def main() -> int:
    """Runs the task of the command line on the bytes of the standard input."""
    module, name, values = sys.argv[1:]
    task = getattr(importlib.import_module(module), name)
    data = sys.stdin.buffer.read()
    limit(len(data))
    try:
        made = task(data, *ast.literal_eval(values))
    except InputError as error:
        sys.stdout.buffer.write(str(error).encode())
        return REFUSED
    sys.stdout.buffer.write(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
