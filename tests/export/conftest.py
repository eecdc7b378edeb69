"""Graph files that these tests opened before are not checked in a child process each time."""

from collections.abc import Callable, Iterator

import pytest

from steadyseg.export.file import foreign, onnx_file


@pytest.fixture(scope="module")
def checked_here() -> Iterator[None]:
    """Checks of a file run in this process and without a first frame, which saves seconds a file; test_onnx_file.py
    starts a child."""

    def run(task: Callable[..., bytes], data: bytes, *more: object) -> bytes:
        return task(data, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx_file, "run_limited", run)
        patch.setattr(foreign, "run_limited", run)
        for module in (onnx_file, foreign):
            patch.setattr(module, "run_once", lambda *_: None)
        yield
