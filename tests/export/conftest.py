"""Graph files that several tests read: made once each, by the command that users call."""

from pathlib import Path

import pytest
from made.graphs import FLAGS, HEIGHT, WIDTH, Graphs
from PIL import Image

from app.cli import main
from seg.street.training_set import StreetSet


@pytest.fixture(scope="session")
def proof_frames(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """21 frames of the street: a proof's gap and reset come at 10 and 20."""
    folder, street = tmp_path_factory.mktemp("proof"), StreetSet(21, HEIGHT, WIDTH, first_seed=5)
    for number in range(21):
        Image.fromarray(street[number][0]).save(folder / f"{number:03}.png")
    return folder


@pytest.fixture(scope="session")
def graphs(tmp_path_factory: pytest.TempPathFactory, proof_frames: Path) -> Graphs:
    """The file of a name in FLAGS; exporting proves each of them."""
    folder = tmp_path_factory.mktemp("graphs")

    def file_of(name: str) -> Path:
        path = folder / f"{name}.onnx"
        if not path.exists():
            flags = [*FLAGS[name], "--size", str(HEIGHT), "--proof-frames", str(proof_frames)]
            assert main(["export", "street-tiny", *flags, "-o", str(path)]) == 0
        return path

    return file_of
