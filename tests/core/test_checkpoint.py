"""Checkpoints: what is saved comes back, a crash leaves a whole file, and hostile or damaged files end in one line."""

import dataclasses
import json
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from made.methods import fit
from refusals import refusal
from safetensors.torch import load_file
from torch import Tensor, nn

from steadyseg.core.classes import CAMVID, ClassList
from steadyseg.core.model.checkpoint import (
    FORMAT_VERSION,
    CheckpointMeta,
    load_checkpoint,
    load_weights,
    parse_meta,
    read_meta,
    save_checkpoint,
)
from steadyseg.seg.pretrained import find_checkpoint

META = CheckpointMeta(
    architecture="unet",
    options={"width": 2, "dropout_places": ["enc3"]},
    classes=CAMVID,
    height=360,
    width=480,
    mean=(0.411895, 0.425133, 0.432671),
    std=(0.307073, 0.311611, 0.307218),
    calibration={
        "vq-dnn": fit("vq-dnn", 1.25, tau=8.0) | {"data": "CamVid", "conformal": {"coverage": 0.9, "lac": 0.8}}
    },
    metrics={"stills": {"nll": 0.3, "frames": 147}},
    training={"epochs": 60},
    licence="CC BY-NC 4.0, \u201cresearch\u201d",
)
NO_TEMPERATURES = (None, 0, "warm", -1.0, [1.0], True, float("nan"), float("inf"), 1e-30, 1e30, 10**400)
NO_SETTINGS = (
    *(("mode", value) for value in ({}, None, "dnn\x1b[2J")),
    *((name, "8") for name in ("samples", "tau", "motion")),
)
"""Settings of a fit that no method can have."""
TENSORS = {"weight": torch.randn(3, 2, generator=torch.Generator().manual_seed(0)), "count": torch.tensor(7)}


def saved(folder: Path, tensors: dict[str, Tensor] = TENSORS, meta: CheckpointMeta = META) -> Path:
    path = folder / "model.safetensors"
    save_checkpoint(path, tensors, meta)
    return path


def written(folder: Path, header: bytes | object, data: bytes = b"") -> Path:
    """A file in the safetensors layout: 8 bytes of header length, JSON header, data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path = folder / "made.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def with_record(folder: Path, **changes: Any) -> Path:
    """A whole safetensors file whose record differs from a good one in the given keys; None removes a key."""
    record = json.loads(META.to_json()) | changes
    record = {key: value for key, value in record.items() if value is not None}
    return written(folder, {"__metadata__": {"steadyseg": json.dumps(record)}})


def refused(path: Path, call: Callable[[Path], object] = load_checkpoint) -> str:
    """Why this file is; the line names it."""
    message = refusal(call, path)
    assert str(path) in message
    return message


def test_tensors_and_record_come_back(tmp_path: Path) -> None:
    path = saved(tmp_path)
    tensors, meta = load_checkpoint(path)
    assert meta == META and read_meta(path) == META
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)
    assert torch.equal(load_file(path)["weight"], TENSORS["weight"])  # any reader of safetensors opens it
    assert json.loads(path.with_suffix(".json").read_text())["format_version"] == FORMAT_VERSION


def test_a_classifier_s_record_comes_back_with_thousands_of_classes(tmp_path: Path) -> None:
    meta = dataclasses.replace(META, classes=ClassList.of_names(f"class {number}" for number in range(5000)))
    path = saved(tmp_path, meta=meta)
    assert load_checkpoint(path)[1] == meta == parse_meta(path.with_suffix(".json").read_text(), path)
    colourless = {"names": ["a", "b"], "colors": [], "void": 255}
    assert "as many colours" in refused(with_record(tmp_path, classes=colourless))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64, torch.bool])
def test_types_and_layouts_survive(tmp_path: Path, dtype: torch.dtype) -> None:
    map_ = torch.randn(2, 3, 4, 5).to(dtype).contiguous(memory_format=torch.channels_last)
    map_[0, 0, 0, 0] = 1e38  # nearly the greatest number of bf16, and finite
    tensors, _ = load_checkpoint(saved(tmp_path, {"a": map_, "b": map_[:, 1:2, ::2]}))
    assert tensors["a"].dtype == dtype and torch.equal(tensors["a"], map_)
    assert torch.equal(tensors["b"], map_[:, 1:2, ::2])


class Attack:
    """Unpickling this creates a file."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.target,)


def test_a_pickle_is_refused_and_never_run(tmp_path: Path) -> None:
    target, path = tmp_path / "owned", tmp_path / "model.pt"
    torch.save(Attack(target), path)
    torch.load(path, weights_only=False)
    assert target.exists()  # the attack is a live one
    target.unlink()
    assert ".safetensors" in refused(path, find_checkpoint)
    path = path.rename(tmp_path / "model.safetensors")
    assert "pickle" in refused(path)
    refused(path, read_meta)
    assert not target.exists()


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    whole, path = saved(tmp_path).read_bytes(), tmp_path / "cut.safetensors"
    for length in [*range(40), *range(40, len(whole), 61), len(whole) - 1]:
        path.write_bytes(whole[:length])
        refused(path)


def test_bytes_that_are_no_file_of_this_layout_are_refused(tmp_path: Path) -> None:
    """A header length that is claimed and never believed, bytes after the end, a folder, nothing."""
    path = saved(tmp_path)
    path.write_bytes(path.read_bytes() + b"\0")
    refused(path)
    for start in (2**64 - 1, 17 * 2**20, 1000, 1):
        path.write_bytes(struct.pack("<Q", start) + b"{}")
        assert str(start) in refused(path)
    (tmp_path / "folder.safetensors").mkdir()
    for name, words in (("folder", "no regular file"), ("absent", "cannot be read")):
        assert words in refused(tmp_path / f"{name}.safetensors")


NESTED = "[" * 100_000 + "]" * 100_000
TYPES = {"F4": 1, "F8_E8M0": 2, "\x1b[2J\n": 2}
"""Number types that torch does not have, and the bytes of two such numbers."""
HEADERS: list[tuple[object, int]] = [
    ([], 4),
    ({"__metadata__": "steadyseg"}, 4),
    ({"__metadata__": {"format": "pt"}}, 4),
    ({"__metadata__": {"steadyseg": 5}}, 4),
    ({"weight": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, 4),
    (NESTED.encode(), 4),
    (b"\xff\xfe\x00", 4),
    (b'{"x":' + b"1" * 5000 + b"}", 4),
    (b'{"__metadata__":{"steadyseg":"' + b"\xc3" + b'"}}', 4),
    *(({"__metadata__": {"steadyseg": text}}, 0) for text in ("{", "[]", "{}", NESTED)),
    *(
        (
            {
                "__metadata__": {"steadyseg": META.to_json()},
                "weight": {"dtype": name, "shape": [2], "data_offsets": [0, size]},
            },
            size,
        )
        for name, size in TYPES.items()
    ),
]


@pytest.mark.parametrize(("header", "size"), HEADERS, ids=lambda header: str(header)[:40])
def test_headers_of_any_other_kind_are_refused(tmp_path: Path, header: object, size: int) -> None:
    refused(written(tmp_path, header, b"\0" * size))


def test_a_record_may_leave_out_what_has_a_default_and_have_unknown_keys(tmp_path: Path) -> None:
    expected = dataclasses.replace(META, calibration={}, licence="")
    assert read_meta(with_record(tmp_path, calibration=None, licence=None, colour="blue")) == expected


BLACK = [0, 0, 0]
WRONG: list[tuple[str, tuple[object, ...]]] = [
    ("classes", ([], {}, {"names": 5, "colors": [], "void": 255})),
    (
        "classes",
        tuple({"names": ["a", "b"], "colors": one, "void": 255} for one in ([BLACK], [1, 2], [BLACK, [0, 0, "x"]])),
    ),
    ("classes", tuple({"names": ["a", "b"], "colors": [BLACK] * 2, "void": void} for void in (1, math.inf))),
    ("mean", (5, [0.5], "abc", [0.5, 0.5, "x"], [0.5, math.inf, 0.5], [math.nan] * 3)),
    ("std", ([0.2, 0.2], [0.2, 0.0, 0.2], [0.2, math.nan, 0.2], [0.2, 1e-30, 0.2])),
    ("metrics", ({"deep": json.loads("[" * 40 + "]" * 40)},)),
    ("height", ("tall", 0)),
    ("width", (64.5,)),
    ("options", ([], "wide")),
    ("architecture", (5,)),
    ("calibration", ([], 1.25, *({"dnn": one} for one in (1.25, {}, None, {"temperature": 1.5})))),
    ("calibration", tuple({"dnn": fit("dnn") | {name: bad}} for name, bad in NO_SETTINGS)),
    ("calibration", tuple({"dnn": fit("dnn"), "bnn": fit("bnn", bad)} for bad in NO_TEMPERATURES)),
]


NAMED = (("format_version", 2), ("format_version", None), ("architecture", None), ("std", None))
"""Entries of another version and missing ones, which the line names."""


@pytest.mark.parametrize(("key", "value"), [*NAMED, *((key, value) for key, values in WRONG for value in values)])
def test_a_record_of_wrong_types_is_refused(tmp_path: Path, key: str, value: object) -> None:
    message = refused(with_record(tmp_path, **{key: value}))
    assert (key, value) not in NAMED or key.removesuffix("_version") in message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state: state.pop("0.bias"), "lacks tensor 0.bias"),
        (lambda state: state.update(extra=torch.zeros(1)), "unknown tensor extra"),
        (lambda state: state.update({"0.weight": torch.zeros(4, 3, 1, 1)}), "0.weight is (4, 3, 1, 1)"),
    ],
)
def test_weights_must_fit_their_architecture(tmp_path, change, words):
    network, path = nn.Sequential(nn.Conv2d(3, 4, 3)), tmp_path / "x.safetensors"
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    state = dict(network.state_dict())
    change(state)
    assert words in refused(path, lambda path: load_weights(network, state, path))
    assert all(torch.equal(before[name], tensor) for name, tensor in network.state_dict().items())


@pytest.mark.parametrize(
    ("dtype", "value"),
    [(torch.float16, math.nan), (torch.bfloat16, math.inf), (torch.float32, -math.inf), (torch.float64, math.nan)],
)
def test_weights_that_are_no_numbers_are_refused(tmp_path: Path, dtype: torch.dtype, value: float) -> None:
    weight = torch.ones(3, 1000, dtype=dtype)
    weight[1, 777] = value
    assert "tensor weight" in refused(
        saved(tmp_path, {"other": torch.ones(3), "weight": weight, "empty": torch.ones(0)})
    )


def test_half_precision_weights_load_into_a_single_precision_network(tmp_path: Path) -> None:
    network = nn.Conv2d(3, 4, 3)
    halves = {name: tensor.half() for name, tensor in network.state_dict().items()}
    load_weights(network, halves, tmp_path)
    assert network.weight.dtype == torch.float32 and torch.equal(network.weight, halves["weight"].float())
