"""The engine that a command asks for: processes of this machine, or Ray."""

import contextlib
from collections.abc import Iterator

from app.scale.engines.engine import Engine, MakeWorker
from app.scale.engines.local_engine import LocalEngine

THREADS = 1
"""Threads of a worker. One video on two threads is slower than two videos on one each, since decoding and drawing do
not divide."""


@contextlib.contextmanager
def open_engine(ray: str | None, make: MakeWorker, device: str) -> Iterator[Engine]:
    """A context with the engine; at its end no worker is left.

    Args:
        ray: `local` or the address of a cluster; None: processes of this machine.
        device: The device of the segmenters; on Ray a worker has a GPU of its own if one is asked for.
    """
    engine: Engine
    if ray is not None:
        from app.scale.engines.ray_engine import RayEngine

        address = None if ray == "local" else ray
        engine = RayEngine(make, THREADS, address, gpus=int(device not in ("auto", "cpu")))
    else:
        engine = LocalEngine(make, THREADS)
    with contextlib.closing(engine):
        yield engine
