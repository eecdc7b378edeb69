"""The record of exported files: what is written comes back, and hostile or foreign entries end in one line."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
from made.worlds import EXPECTED
from refusals import refusal

from steadyseg.core.classes import CAMVID
from steadyseg.core.errors import InputError
from steadyseg.core.method import Method
from steadyseg.export.file.metadata import MAX_CHARACTERS, GraphMeta, from_props

META = GraphMeta(
    kind="stream",
    classes=CAMVID,
    height=352,
    width=480,
    mean=(0.411895, 0.425133, 0.432671),
    std=(0.307073, 0.311611, 0.307218),
    method=Method("vq-bnn", samples=3, tau=1.25, temperature=1.25, calibrated=True),
    head_stride=2,
    precision="fp16",
    source="camvid-unet-s",
    source_sha256="0123456789abcdef" * 4,
    versions={"torch": "2.11.0", "steadyseg": "0.1.0"},
    licence="CC BY-NC 4.0, “research”\nsee the data's page",
    reference_scores=(-0.5, 0.25, 3.0),
)


def refused(props: dict[str, str]) -> str:
    message = refusal(from_props, props, "m.onnx")
    assert message.startswith("m.onnx: ") and len(message) < 400
    return message


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"kind": "logits", "reference_scores": (), "licence": ""},
        {"method": Method("dnn", note="no temperature was fitted")},
        {"method": Method("bnn", samples=30, temperature=0.1 + 0.2)},
        {"method": Method("vq-dnn", tau=8.0, motion=True, calibrated=True)},
    ],
)
def test_what_is_written_comes_back(changes: dict[str, Any]) -> None:
    meta = dataclasses.replace(META, **changes)
    props = meta.to_props()
    assert all(isinstance(text, str) for entry in props.items() for text in entry)
    assert from_props(props, "m.onnx") == meta and from_props(props, "m.onnx").method.note == meta.method.note


def test_a_reader_in_another_language_finds_plain_entries() -> None:
    props = META.to_props()
    names = (
        "steadyseg_format kind classes palette void_id input_height input_width mean std temperature mode samples tau "
        "head_stride precision source source_sha256 versions licence motion calibrated note average "
        "reference_scores"
    )
    assert set(props) == set(names.split())
    told = [props[name] for name in ("steadyseg_format", "kind", "mode", "input_height")]
    assert told == ["1", "stream", "vq-bnn", "352"]
    assert json.loads(props["classes"]) == list(CAMVID.names)
    assert json.loads(props["palette"]) == [list(color) for color in CAMVID.colors] and props["void_id"] == "11"


def test_files_of_earlier_versions_are_read_but_for_those_whose_maps_come_late() -> None:
    assert from_props(META.to_props() | {"lag": "0", "adaptive": "true"}, "m.onnx") == META
    assert "its maps come late" in refused(META.to_props() | {"lag": "2"})


def test_a_file_of_a_version_before_03_has_an_arithmetic_mean() -> None:
    props = META.to_props()
    del props["average"]
    assert from_props(props, "m.onnx").method.average == "arithmetic"


@pytest.mark.parametrize("key", sorted(META.to_props().keys() - {"average"}))
def test_every_entry_is_needed(key: str) -> None:
    props = META.to_props()
    del props[key]
    message = refused(props)
    assert ("class list" if key == "classes" else key) in message and "steadyseg export" in message


def test_another_format_names_both() -> None:
    message = refused(META.to_props() | {"steadyseg_format": "2"})
    assert "'2'" in message and "'1'" in message


def other_names(*last: object) -> str:
    return json.dumps([*CAMVID.names[:10], *last])


TEXTS: list[tuple[str, tuple[str, ...]]] = [
    ("kind", ("heatmap",)),
    ("mode", ("vq",)),
    ("precision", ("fp64",)),
    ("classes", ("{}", '["Sky"]', json.dumps(["Sky"] * 11), '["' + "a" * 2000 + '", "b"]')),
    ("classes", (other_names(7), other_names(""), other_names("a\nb"), other_names("\ud800"))),
    ("classes", ("[" * 100_000 + "]" * 100_000, '"' + "a" * MAX_CHARACTERS + '"')),
    ("palette", ("7", "[[0, 0, 0]]", json.dumps([[0, 0]] * 11))),
    ("palette", tuple(json.dumps([[0, 0, value]] * 11) for value in (256, 1.5, True))),
    ("void_id", ("10", "256", "null")),
    ("motion", ("1",)),
    ("input_height", ("0", "352.0", "true")),
    ("input_width", ("1000000000", "9" * 5000)),
    ("mean", ("[0.4, 0.4]", "[0.4, 0.4, NaN]", "[0.4, 0.4, 1e999]", '[0.4, 0.4, "0.4"]')),
    ("std", ("[0.3, 0.3, 0]", "0.3")),
    ("temperature", ("NaN", "0", "[]", "1" + "0" * 400)),
    ("samples", ("0", "1000000000", "null")),
    ("tau", ("null", "NaN", "0")),
    ("head_stride", ("0", "3", "1.0")),
    ("source", ("", "a\nb", "a" * 10_000)),
    ("source_sha256", ("0" * 63, "0" * 64 + "\n", "G" * 64)),
    ("versions", ("[]", '{"torch": 2}', '{"torch": "2\\n3"}', json.dumps({str(i): "1" for i in range(1000)}))),
    ("licence", ("a" * 100_000, "\x1b[2J")),
    ("calibrated", ("null",)),
    ("note", ("a\nb",)),
    ("reference_scores", ("7", "[NaN]", "[2.0, 1.0]", '["1"]', "[1", str(list(range(10_001))))),
]
HOSTILE = [(key, text) for key, texts in TEXTS for text in texts]


@pytest.mark.parametrize(("key", "text"), HOSTILE, ids=[f"{key}-{number}" for number, (key, _) in enumerate(HOSTILE)])
def test_a_hostile_entry_is_one_line(key: str, text: str) -> None:
    """The line names the entry, or the field or list it stands for."""
    message = refused(META.to_props() | {key: text})
    words = {"classes": ("class",), "palette": ("palette", "colour"), "void_id": ("void",)}
    assert any(word in message for word in words.get(key, (key.removeprefix("input_"),)))


@pytest.mark.parametrize(
    ("entries", "word"),
    [
        ({"mode": "vq-dnn"}, "samples"),  # three samples without a mask to draw
        ({"mode": "bnn"}, "tau"),  # smoothing in a mode that has none
        ({"mode": "bnn", "tau": "null", "motion": "true"}, "motion"),
    ],
)
def test_entries_that_contradict_the_mode_are_refused(entries: dict[str, str], word: str) -> None:
    assert word in refused(META.to_props() | entries)


@pytest.mark.parametrize(
    "change",
    [
        lambda: dataclasses.replace(META, method=Method("dnn", temperature=float("nan"))),
        lambda: dataclasses.replace(META, head_stride=4),
    ],
)
def test_a_writer_cannot_make_what_a_reader_refuses(change: Callable[[], GraphMeta]) -> None:
    with pytest.raises(InputError):
        change()


FIT = {"mode": "vq-bnn", "samples": 3, "tau": 1.25, "motion": False, "temperature": 1.25, "data": "own"}
FIT |= {"conformal": {"coverage": 0.9, "lac": 0.3}}
SHARES = {"frames": 50, "kept": [1.0, 0.5], "right": [0.9, 0.99]}
LEFT = {key: FIT[key] for key in ("mode", "samples", "tau", "motion")} | {"thresholds": [0.0, 0.5]}


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("fit", {"mode": "dnn"}),  # of another method
        ("fit", {"conformal": {"coverage": 0.9, "lac": "0.3"}}),
        ("fit", {"conformal": {"lac": 0.3}}),
        ("fit", {"class_risk": {"class": "unicorn", "level": 0.05, "threshold": 0.1}}),
        ("fit", {"data": "a\x1b[2J"}),
        ("thresholds", {"sets": {"<b>": SHARES}}),
        ("thresholds", {"thresholds": [0.5, 0.0]}),
        ("expected", {"layout_deviation": 0.0}),
        ("expected", {"costs": [[1.0] * 10] * 4}),  # of another number of classes
    ],
)
def test_a_calibration_comes_back_and_a_malformed_one_is_refused(key: str, change: dict[str, Any]) -> None:
    risk = {"class_risk": {"class": "Road", "level": 0.05, "threshold": 0.1}}
    left = LEFT | {"sets": {"own": SHARES}}
    meta = dataclasses.replace(META, fit=FIT | risk, thresholds=left, expected=EXPECTED)
    props = meta.to_props()
    assert from_props(props, "m.onnx") == meta and meta.fit_in_use(meta.method) == meta.fit
    assert key in refused(props | {key: json.dumps(getattr(meta, key) | change)})
