"""A record's network is built before its weights are read: not one that fills the memory, whatever the record says."""

import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from refusals import refusal
from torch import nn

from steadyseg.app.classifiers import open_classifier
from steadyseg.app.open_model import open_segmenter
from steadyseg.core.classes import CAMVID, ClassList
from steadyseg.core.model import model
from steadyseg.core.model.checkpoint import CheckpointMeta, save_checkpoint
from steadyseg.core.model.model import limited_weights


@pytest.mark.parametrize(
    ("architecture", "options"),
    [
        ("unet", {"channels": 512}),  # 1.1 billion weights
        ("unet", {"depth": 10**9}),  # as many names of stages
        ("smp", {"decoder_channels": [8000] * 5}),
        ("smp", {"decoder_channels": [2**20] * 5}),  # one of them larger than any memory
        ("classifier", {"network": "resnet18", "channels": 1024}),
    ],
    ids=str,
)
def test_a_small_file_with_a_record_of_a_giant_is_refused(
    tmp_path: Path, architecture: str, options: dict[str, Any]
) -> None:
    classes = ClassList.of_names("ab") if architecture == "classifier" else CAMVID
    meta = CheckpointMeta(architecture, options, classes, 64, 64, (0.4,) * 3, (0.3,) * 3)  # type: ignore[arg-type]
    save_checkpoint(tmp_path / "m.safetensors", {"weight": torch.ones(1)}, meta)
    message = refusal(
        open_classifier if architecture == "classifier" else open_segmenter, str(tmp_path / "m.safetensors")
    )
    assert any(
        words in message for words in ("more than 268435456 weights", "depth must be 2..7", "you tried to allocate")
    )


def test_only_the_thread_that_opens_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "MIN_WEIGHT_LIMIT", 30)
    with limited_weights({"weight": torch.ones(20)}, Path("x")):
        other = threading.Thread(target=lambda: nn.Linear(100, 100))
        other.start()
        other.join()
        nn.Linear(6, 5)
        assert "more than 40 weights" in refusal(nn.BatchNorm1d, 6)  # the second file's worth, and buffers count
    nn.Linear(100, 100)
