"""The engine that a command asks for, by its name."""

import contextlib
from collections.abc import Iterator

from app.scale.engines.engine import Engine, MakeWorker
from app.scale.engines.local_engine import LocalEngine
from app.scale.flags import EngineOptions
from core.errors import InputError

THREADS = 1
"""Threads of a worker. One video on two threads is slower than two videos on one each, since decoding and drawing do
not divide."""


@contextlib.contextmanager
def open_engine(options: EngineOptions, make: MakeWorker, device: str) -> Iterator[Engine]:
    """A context with the engine; at its end no worker is left. `device`: the device of the segmenters; on Ray a
    worker has a GPU of its own if one is asked for."""
    engine: Engine
    if options.engine == "ray":
        from app.scale.engines.ray_engine import RayEngine

        engine = RayEngine(make, THREADS, options.ray_address, gpus=int(device not in ("auto", "cpu")))
    else:
        engine = LocalEngine(make, THREADS)
    with contextlib.closing(engine):
        yield engine


def check_engine(options: EngineOptions) -> None:
    """Raises InputError for options that contradict each other, before anything is opened."""
    if options.ray_address is not None and options.engine != "ray":
        raise InputError("--ray-address is for --engine ray; add that or omit the address")
