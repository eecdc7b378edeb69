"""Graph files that several tests read: made once each, by the command that users call."""

from pathlib import Path

import pytest
from made.graphs import FLAGS, HEIGHT, Graphs

from steadyseg.app.cli import main


@pytest.fixture(scope="session")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Graphs:
    """The file of a name in FLAGS; exporting proves each of them."""
    folder = tmp_path_factory.mktemp("graphs")

    def file_of(name: str) -> Path:
        path = folder / f"{name}.onnx"
        if not path.exists():
            flags = [*FLAGS[name], "--size", str(HEIGHT)]
            assert main(["export", "street-tiny", *flags, "-o", str(path)]) == 0
        return path

    return file_of
