"""Classifiers that ship: small, half precision, complete records; and how one comes to be pretrained."""

import json
from pathlib import Path

import pytest
import torch
from made.classifier import save_classifier
from refusals import refusal

import steadyseg.classification.pretrained
from steadyseg.classification.pretrained import find_classifier, list_classifiers, read_classifier
from steadyseg.core.errors import InputError
from steadyseg.core.model.checkpoint import load_checkpoint, parse_meta, read_meta
from steadyseg.studies.harness.bundle import bundle

LIMIT_MB = 10
"""Limit on all classifiers together."""


def test_the_pretrained_ones_are_small_together() -> None:
    assert sum(find_classifier(name).stat().st_size for name in list_classifiers()) < LIMIT_MB * 1e6


def test_every_pretrained_one_opens_and_says_where_it_comes_from() -> None:
    for name in list_classifiers():
        path = find_classifier(name)
        meta = read_classifier(name).meta
        assert meta.licence and meta.training["command"].startswith("steadyseg train classification"), name
        assert path.with_suffix(".md").is_file() and parse_meta(path.with_suffix(".json").read_text(), path) == meta
        for row in meta.metrics.values():
            assert {"data", "split", "frames", "frame_list_hash", "mode", "samples", "seed", "nll"} <= row.keys(), name


def test_a_run_s_result_becomes_a_pretrained_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, result, folder = save_classifier(tmp_path / "model.safetensors"), tmp_path / "r.json", tmp_path / "queue"
    row = {"protocol": "stills", "mode": "bnn", "samples": 50, "nll": 0.123456789, "top_5_accuracy": 0.9, "rows": []}
    result.write_text(json.dumps(row))
    made = bundle(source, "tiny", "free", "steadyseg train classification", [result], folder)
    tensors, meta = load_checkpoint(made)
    assert all(tensor.dtype == torch.float16 for tensor in tensors.values() if tensor.is_floating_point())
    figures = {"protocol": "stills", "mode": "bnn", "samples": 50, "nll": 0.123457, "top_5_accuracy": 0.9}
    assert meta.metrics == {"stills-bnn": figures} and meta.licence == "free"

    monkeypatch.setattr(steadyseg.classification.pretrained, "FOLDER", folder)
    assert list_classifiers() == ["tiny"] and find_classifier("tiny") == made
    network = read_classifier("tiny").network()
    assert next(network.parameters()).dtype == torch.float32
    assert "did you mean tiny" in refusal(read_classifier, "tiny-2")


def test_without_any_pretrained_one_a_file_still_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steadyseg.classification.pretrained, "FOLDER", tmp_path / "absent")
    path = save_classifier(tmp_path / "c.safetensors")
    assert read_classifier(path).meta == read_meta(path)
    for name in ("c", "absent.safetensors"):
        with pytest.raises(InputError, match="none"):
            read_classifier(name)
