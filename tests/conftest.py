"""What holds for every test: one thread a process, where the real data is (`pytest --data=DIR`), the order of the
files."""

import os

for name in ("OMP", "MKL", "OPENBLAS", "NUMBA"):  # before torch is imported; the processes that tests start inherit it
    os.environ[f"{name}_NUM_THREADS"] = "1"
os.environ["OPENCV_FOR_THREADS_NUM"] = "1"
if (worker := os.environ.get("PYTEST_XDIST_WORKER")) and hasattr(os, "sched_setaffinity"):
    # A core for each worker: OpenVINO and ONNX Runtime take as many threads as the process has cores.
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})

import functools  # noqa: E402
import gc  # noqa: E402
import tempfile  # noqa: E402
from collections.abc import Callable, Iterator  # noqa: E402
from pathlib import Path  # noqa: E402

import pytest  # noqa: E402
from made.shared import FOLDER  # noqa: E402

from steadyseg.app.data_sets import DATA  # noqa: E402
from steadyseg.core.system.files import cache_file  # noqa: E402

if FOLDER not in os.environ:  # the first process of a run; workers inherit the name
    SHARED = tempfile.TemporaryDirectory(prefix="steadyseg-tests-")
    os.environ[FOLDER] = SHARED.name
if "STEADYSEG_CACHE" not in os.environ:
    # The processes of one run convert a network once. Of the user's own cache they take the runtime of browsers alone.
    CACHE = tempfile.TemporaryDirectory(prefix="steadyseg-tests-")
    for package in cache_file(".").glob("*.tgz"):
        Path(CACHE.name, package.name).symlink_to(package)
    os.environ["STEADYSEG_CACHE"] = CACHE.name

PROJECT = Path(__file__).parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--data", default=str(DATA), help="folder with camvid/, video/, ... (`steadyseg data list`)")


def pytest_collection_finish() -> None:
    """Modules stay until the end, so the collector need not look at them; seldom is enough for what tests leave."""
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    # Without this, torch reads the source of its 500 operators for every export, most of a small export's time.
    ONNXRegistry.from_torchlib = staticmethod(functools.cache(ONNXRegistry.from_torchlib))
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what drives a browser or needs the page for one. Files with slow tests come first: a late long file leaves
    a worker idle."""
    for item in items:
        if {"playwright", "site"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("browser")
    slow = {item.path for item in items if item.get_closest_marker("slow") or item.get_closest_marker("long")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def data_dir(request: pytest.FixtureRequest) -> Path:
    """The folder of real data sets; skips where it is absent."""
    folder = Path(request.config.getoption("--data"))
    if not folder.is_dir():
        pytest.skip(f"real data is absent: no folder {folder} (pytest --data=DIR)")
    return folder


@pytest.fixture(scope="session")
def graphs() -> Callable[[str], Path]:
    """The file of a name in made.graphs.FLAGS."""
    from made.graphs import graph_file

    return graph_file


@pytest.fixture(scope="session")
def room() -> Path:
    """The folder of made.robustness.made_room."""
    from made.robustness import made_room

    return made_room()


@pytest.fixture(scope="module")
def checked_here() -> Iterator[None]:
    """Checks of a graph file run in this process and without a first frame, which saves seconds a file;
    tests/export/test_onnx_file.py starts a child."""
    from steadyseg.export.file import foreign, foreign_form, onnx_file

    def run(task: Callable[..., bytes], data: bytes, *more: object) -> bytes:
        return task(data, *more)

    with pytest.MonkeyPatch.context() as patch:
        for reader, checker in ((onnx_file, onnx_file), (foreign, foreign_form)):
            patch.setattr(reader, "run_limited", run)
            patch.setattr(checker, "run_once", lambda *_: None)
        yield
