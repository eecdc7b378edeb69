"""The checkpoints that ship: small, half precision, complete records, and what the records promise."""

import dataclasses
import json
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from made.methods import opened_by_torch

from steadyseg.core.errors import InputError
from steadyseg.core.model.checkpoint import (
    count_parameters,
    digest_of_weights,
    load_checkpoint,
    parse_meta,
    read_meta,
    save_checkpoint,
)
from steadyseg.core.model.tensor_file import write_tensors
from steadyseg.seg.data.camvid_download import LICENCE_NOTE
from steadyseg.seg.pretrained import FOLDER, find_checkpoint
from steadyseg.street.drive import Street
from steadyseg.studies.harness.bundle import bundle

TERMS = LICENCE_NOTE.removeprefix("CamVid is for ").partition(". ")[0]
LIMIT_MB = dict.fromkeys(("road-mobile", "road-quality", "street-mobile", "street-tiny"), 2)
LIMIT_MB |= {"camvid-unet-s": 7, "road-realtime": 8}


@pytest.mark.parametrize("name", LIMIT_MB)
def test_a_pretrained_checkpoint_is_small_and_says_where_it_comes_from(name: str) -> None:
    path = find_checkpoint(name)
    assert path.stat().st_size < LIMIT_MB[name] * 1e6
    meta = read_meta(path)
    assert meta.licence and "steadyseg train seg" in meta.training["command"] and meta.metrics
    card = " ".join(path.with_suffix(".md").read_text().split())
    is_restricted = TERMS in card or "**Licence**: as [`road" in card
    assert (TERMS in meta.licence) == (not name.startswith("street-")) == is_restricted
    assert parse_meta(path.with_suffix(".json").read_text(), path) == meta
    for key, row in meta.metrics.items():
        measured_on = {"data", "split", "frames", "frame_list_hash", "protocol", "mode", "samples", "seed", "nll"}
        assert measured_on <= row.keys(), key


def test_the_street_network_knows_its_street() -> None:
    segmenter = opened_by_torch("street-tiny", mode="dnn")
    frame = Street(seed=3, height=180, width=240).frame(40)
    right = segmenter.step(frame).label == frame.label
    assert right[frame.label != segmenter.classes.void].mean() > 0.75


def test_bundling_halves_the_weights_and_keeps_the_results(tmp_path: Path) -> None:
    row = {"protocol": "stills", "mode": "dnn", "nll": 0.123456789, "accuracy": 0.9, "frame_list": ["a"]}
    (result := tmp_path / "r.json").write_text(json.dumps(row))
    source, other = FOLDER / "street-tiny.safetensors", tmp_path / "other.safetensors"
    weights, meta = load_checkpoint(source)
    save_checkpoint(other, {key: value + 1 for key, value in weights.items()}, meta)
    tensors, meta = load_checkpoint(bundle(source, "copy", "free", "train", [result], tmp_path, mean_with=str(other)))
    assert all(tensor.dtype == torch.float16 for tensor in tensors.values() if tensor.is_floating_point())
    assert (tensors["head.bias"] - weights["head.bias"]).tolist() == pytest.approx([0.5] * 11, abs=2e-3)
    assert meta.metrics["stills-dnn"] == {"protocol": "stills", "mode": "dnn", "nll": 0.123457, "accuracy": 0.9}
    assert meta.licence == "free"


def test_a_checkpoint_may_have_the_weights_of_one_beside_it(tmp_path: Path) -> None:
    small = Path(shutil.copy(FOLDER / "street-tiny.safetensors", tmp_path))
    large = bundle(small, "large", "", "", [], tmp_path, size=360, weights_of=small.stem)
    assert large.stat().st_size < 10_000 and count_parameters(large) == count_parameters(small)
    tensors, meta = load_checkpoint(small)
    (found, record), whole = load_checkpoint(large), tmp_path / "sub" / "whole.safetensors"
    assert (record.height, record.width) == (360, 512) and record.weights["file"] == small.name
    for path in (large, whole):
        save_checkpoint(path, found, record)
    assert large.stat().st_size < 10_000 and not read_meta(whole).weights
    for other in (found, load_checkpoint(whole)[0]):
        assert tensors.keys() == other.keys() and all(torch.equal(tensors[key], other[key]) for key in tensors)
    save_checkpoint(small, tensors | {"novelty.mean": torch.ones(1)}, dataclasses.replace(meta, licence="new"))
    assert load_checkpoint(large)[0].keys() == tensors.keys()  # the same weights, with another record
    with pytest.raises(InputError, match=f"{small.name} has other weights"):
        bundle(FOLDER / "street-mobile.safetensors", "other", "", "", [], tmp_path, weights_of=small.stem)
    save_checkpoint(small, *load_checkpoint(large))  # over the file with the weights: they stay
    assert load_checkpoint(small)[0].keys() == tensors.keys() and not read_meta(small).weights
    save_checkpoint(small, tensors | {"head.bias": tensors["head.bias"] + 1}, meta)
    for _ in range(2):
        with pytest.raises(InputError, match=f"needs {small.name} with the weights .* copy both files"):
            load_checkpoint(large)
        small.unlink(missing_ok=True)
    with pytest.raises(InputError, match=f"needs {small.name} with"):
        count_parameters(large)
    for name, told in {large.name: "needs", f"sub/{whole.name}": "beside", "": "beside", "a\\u0000b": "beside"}.items():
        write_tensors(large, {}, large.with_suffix(".json").read_text().replace(small.name, name))
        with pytest.raises(InputError, match=told):
            load_checkpoint(large)


@pytest.mark.parametrize(
    "change",
    [
        lambda entries: {
            **entries,
            "stages.8.convs.0.bias": entries["stages.8.convs.3.bias"],
            "stages.8.convs.3.bias": entries["stages.8.convs.0.bias"],
        },
        lambda entries: {**entries, "head.bias": entries["head.bias"] | {"shape": [11, 1]}},
        lambda entries: {**entries, "head.bias": entries["head.bias"] | {"dtype": "BF16"}},
    ],
    ids=["names", "shape", "type"],
)
def test_weights_beside_are_the_same_tensors_and_not_bytes_alone(change: Any, tmp_path: Path) -> None:
    """The bytes of the tensors stay. The record with the digest is a part of the key of converted networks."""
    small = Path(shutil.copy(FOLDER / "street-tiny.safetensors", tmp_path))
    large = bundle(small, "large", "", "", [], tmp_path, weights_of=small.stem)
    load_checkpoint(large)
    data = small.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    text = json.dumps(change(json.loads(data[8:start]))).encode()
    small.write_bytes(struct.pack("<Q", len(text)) + text + data[start:])
    with pytest.raises(InputError, match=r"with the weights .* beside it"):
        load_checkpoint(large)
    assert digest_of_weights(small.read_bytes()) != read_meta(large).weights["digest"]


def test_the_short_digest_of_weights_is_refused(tmp_path: Path) -> None:
    small = Path(shutil.copy(FOLDER / "street-tiny.safetensors", tmp_path))
    large = bundle(small, "large", "", "", [], tmp_path, weights_of=small.stem)
    digest = read_meta(large).weights["digest"]
    write_tensors(large, {}, large.with_suffix(".json").read_text().replace(digest, digest[:12]))
    with pytest.raises(InputError, match="and the SHA-256 of its tensors"):
        load_checkpoint(large)


def test_weights_that_half_precision_cannot_hold_are_not_pretrained(tmp_path: Path) -> None:
    tensors, meta = load_checkpoint(FOLDER / "street-tiny.safetensors")
    tensors["head.bias"] = tensors["head.bias"].float() + 1e6
    save_checkpoint(tmp_path / "big.safetensors", tensors, meta)
    with pytest.raises(InputError, match="half precision"):
        bundle(tmp_path / "big.safetensors", "copy", "", "", [], folder=tmp_path)
