"""Graph files that several tests read: made once, by the command that users call."""

from pathlib import Path

import pytest

from app.cli import main


@pytest.fixture(scope="session")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """street-tiny in every mode, by name; exporting proves each of them."""
    folder = tmp_path_factory.mktemp("graphs")
    made = {}
    for name, flags in {
        "vq-dnn": ["--mode", "vq-dnn"], "vq-bnn": ["--mode", "vq-bnn"], "dnn": ["--mode", "dnn"],
        "bnn": ["--mode", "bnn", "--samples", "3"], "window": ["--mode", "vq-dnn", "--window", "2"],
    }.items():  # fmt: skip
        made[name] = folder / f"{name}.onnx"
        assert main(["export", "street-tiny", "--stateful", *flags, "-o", str(made[name])]) == 0
    return made
