"""What a record names is checked before anything is fetched, built or allocated, its weights too."""

import dataclasses
import json
import math
import socket
import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from fuzzing.mutate import damage_json
from made.worlds import world_record, world_tensors
from refusals import refusal
from torch import nn

from steadyseg.app.classifiers import open_classifier
from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.options import ClassifierOptions
from steadyseg.core.classes import CAMVID, ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.familiarity.stored import familiarity_head
from steadyseg.core.method import Method, MethodOptions
from steadyseg.core.model import model as model_module
from steadyseg.core.model.checkpoint import CheckpointMeta, parse_meta, save_checkpoint
from steadyseg.core.model.model import Model, limited_weights
from steadyseg.runtime.open_model import is_classifier, open_model, open_segmenter
from steadyseg.seg.networks.build import build_network
from steadyseg.seg.options import UNetOptions

META = CheckpointMeta("unet", {"channels": 2}, CAMVID, 64, 96, (0.4, 0.4, 0.4), (0.3, 0.3, 0.3))
SHARES = {"kept": [1.0, 0.9], "right": [0.9, 0.95]}
FIT = {"mode": "vq-dnn", "samples": 1, "tau": 8.0, "motion": True, "temperature": 1.2}


@pytest.mark.parametrize("encoder", ["tu-hf-hub:timm/resnet18.a1_in1k", "tu-local-dir:FOLDER", "tu-FOLDER/x"])
def test_an_encoder_from_elsewhere_is_refused_before_the_network_or_the_disk_is_asked(encoder, tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text(json.dumps({"architecture": "resnet18", "num_classes": 3}))
    asked: list[object] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *given, **_: asked.append(given))
    options = {"encoder": encoder.replace("FOLDER", str(tmp_path))}
    assert "timm has no network" in refusal(build_network, "smp", options, 5)
    assert not asked


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"width": 10**9}, "2097152"),
        ({"height": 4096, "width": 4096}, "2097152"),
        ({"height": 10**400}, "a whole number has 401 digits"),
        ({"height": True}, "height"),
        ({"licence": 3}, "licence"),
        ({"calibration": {"vq-dnn": FIT | {"samples": 10**9}}}, "samples"),
        ({"calibration": {"vq-dnn": FIT | {"mode": 3}}}, "mode"),
        ({"calibration": {"vq-dnn": FIT | {"tau": math.nan}}}, "tau"),
        ({"thresholds": {"thresholds": [0.0, 0.5], "sets": {"val": SHARES}}}, "thresholds"),
        ({"thresholds": FIT | {"thresholds": [0.0, 0.5, 0.6], "sets": {"val": SHARES}}}, "thresholds"),
        ({"thresholds": FIT | {"thresholds": [0.0, 0.5], "sets": {"<img src=x>": SHARES}}}, "thresholds"),
        ({"classes": {"names": [f"{number}" for number in range(40_000)], "colors": [], "void": None}}, "32768"),
    ],
    ids=str,
)
def test_a_size_or_value_beyond_its_limit_is_named(changes: dict[str, Any], words: str) -> None:
    text = json.dumps(json.loads(META.to_json()) | changes)
    message = refusal(parse_meta, text, Path("m.safetensors"))
    assert message.startswith("m.safetensors: ") and words in message


@pytest.mark.parametrize(
    "options",
    [
        {"network": "vit6", "img_size": 2**20, "patch_size": 2**19},
        {"network": "vit6", "img_size": 1024, "patch_size": 1},
        {"network": "timm:vit_tiny_patch16_224", "patch_size": 1},
        {"network": "swin6", "attention_window": 10**6},
    ],
    ids=str,
)
def test_a_transformer_of_too_many_patches_is_refused_before_it_is_built(options: dict[str, Any]) -> None:
    before = reset_peak()
    refusal(build_classifier, options, 3)
    assert peak_memory_bytes() - before < 2**26


def test_a_short_vector_of_familiarity_makes_no_great_matrix() -> None:
    """80 kB of `whiten.bias` would decide a matrix of 1.6 GB."""
    network = build_network("unet", UNetOptions(channels=2), len(CAMVID))
    tensors = network.state_dict() | world_tensors("dec9", 2)
    meta = dataclasses.replace(META, familiarity=world_record("dec9"))
    model = Model("m", Path("m"), "", meta, tensors | {"novelty.dec9.whiten.bias": torch.zeros(20_000)}, {})
    before = reset_peak()
    assert "do not fit their record" in refusal(familiarity_head, model, Method("dnn"))
    assert peak_memory_bytes() - before < 2**28


def test_a_file_of_every_kind_survives_damaged_records(tmp_path: Path) -> None:
    """The record alone, 500 damages of each kind; `PYTHONPATH=tests python -m fuzzing` opens whole files."""
    animals, sides = ClassList.of_names(("cat", "dog", "eel")), {"height": 32, "width": 32}
    options = dataclasses.asdict(ClassifierOptions(channels=2, dropout=0.3))
    novel = world_record("dec9")
    for name, meta, state in (
        ("seg", dataclasses.replace(META, calibration={"a": FIT}, familiarity=novel), None),
        ("class", dataclasses.replace(META, architecture="classifier", options=options, classes=animals, **sides), 1),
    ):
        path = tmp_path / f"{name}.safetensors"
        tensors = build_classifier(options, 3).state_dict() if state else read_tensors_of_unet()
        save_checkpoint(path, tensors, meta)
        good = open_model(str(path))
        assert isinstance(good, Model)
        record = json.loads(meta.to_json())
        for number in range(500):
            text = json.dumps(damage_json(record, Random(f"{name} {number}")))
            try:
                damaged = good.with_record(parse_meta(text, path))
                if is_classifier(damaged):
                    continue
                method = MethodOptions().resolve(damaged.meta)
                familiarity_head(damaged, method)
            except InputError as error:
                assert str(error).isprintable()


def read_tensors_of_unet() -> dict[str, torch.Tensor]:
    network = build_network("unet", UNetOptions(channels=2), len(CAMVID))
    return network.state_dict() | world_tensors("dec9", 2)


def peak_memory_bytes() -> int:
    """Peak resident memory of this process; the value of getrusage begins with the parent process's value."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def reset_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return peak_memory_bytes()


@pytest.mark.parametrize(
    ("architecture", "options"),
    [
        ("unet", {"channels": 512}),  # 1.1 billion weights
        ("unet", {"depth": 10**9}),  # as many names of stages
        ("smp", {"decoder_channels": [2**20] * 5}),  # one of them larger than any memory
        ("classifier", {"network": "resnet18", "channels": 1024}),
    ],
    ids=str,
)
def test_a_small_file_with_a_record_of_a_giant_is_refused(tmp_path, architecture, options):
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
    monkeypatch.setattr(model_module, "MIN_WEIGHT_LIMIT", 30)
    with limited_weights({"weight": torch.ones(20)}, Path("x")):
        other = threading.Thread(target=lambda: nn.Linear(100, 100))
        other.start()
        other.join()
        nn.Linear(6, 5)
        assert "more than 40 weights" in refusal(nn.BatchNorm1d, 6)  # the second file's worth, and buffers count
    nn.Linear(100, 100)
