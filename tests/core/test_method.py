"""What a method's options mean, which temperature is used with which method, and class lists."""

import dataclasses
import math
from dataclasses import replace

import numpy as np
import pytest
from made.methods import fit
from refusals import refusal

from steadyseg.core.classes import CAMVID, ClassList
from steadyseg.core.method import Method, MethodOptions, settings
from steadyseg.core.model.checkpoint import CheckpointMeta

META = CheckpointMeta("unet", {}, CAMVID, 360, 480, (0.4, 0.4, 0.4), (0.3, 0.3, 0.3))
FITTED = MethodOptions("vq-dnn").resolve()
CALIBRATED = META.with_fit(FITTED, settings(FITTED) | {"temperature": 0.9})


@pytest.mark.parametrize(
    ("options", "method"),
    [
        (MethodOptions(), Method("vq-dnn", tau=1.25, motion=True, average="geometric")),
        (MethodOptions(average="arithmetic"), Method("vq-dnn", tau=8.0, motion=True)),
        (MethodOptions(average="geometric", motion=False), Method("vq-dnn", tau=1.25, average="geometric")),
        (MethodOptions(motion=False), Method("vq-dnn", tau=1.25)),
        (MethodOptions("vq-bnn", samples=3, tau=2.0), Method("vq-bnn", 3, 2.0, motion=True)),
        (MethodOptions("bnn", tau=2.0), Method("bnn", 30)),
    ],
    ids=str,
)
def test_what_is_left_out_is_decided(options: MethodOptions, method: Method) -> None:
    assert options.resolve() == method


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (MethodOptions("dnn", samples=2), "no dropout"),
        (MethodOptions("bnn", samples=0), "1 or more"),
        (MethodOptions("dnn", motion=True), "use vq-dnn"),
        (MethodOptions("vq-bnn", average="geometric"), "passes of MC dropout are samples"),
        (MethodOptions("dnn", average="geometric"), "which has no memory"),
        (MethodOptions(average="harmonic"), "arithmetic or geometric"),  # type: ignore[arg-type]
        (MethodOptions("knn"), "choose from dnn"),  # type: ignore[arg-type]
        (MethodOptions("dnn", calibrated=True), "no temperature was fitted"),
    ],
    ids=str,
)
def test_what_cannot_be_is_one_line(options: MethodOptions, words: str) -> None:
    assert words in refusal(options.resolve, META)


def test_a_temperature_is_used_with_the_method_it_was_fitted_with_and_no_other() -> None:
    assert MethodOptions("vq-dnn").resolve(CALIBRATED) == replace(FITTED, temperature=0.9, calibrated=True)
    for other in (
        MethodOptions(motion=False),
        MethodOptions(tau=3.0),
        MethodOptions("vq-bnn"),
        MethodOptions("dnn"),
        MethodOptions(calibrated=False),
    ):
        method = other.resolve(CALIBRATED)
        assert method.temperature == 1.0 and not method.calibrated and method.note
    assert str(FITTED) in MethodOptions(motion=False).resolve(CALIBRATED).note  # what there is one for


def test_a_fit_belongs_to_its_settings_whatever_its_key_is() -> None:
    whole = {"of last week": fit("vq-dnn", 0.9, tau=8.0, motion=True)}
    of_old = {"of a version before": {k: v for k, v in whole["of last week"].items() if k != "average"}}
    for fits in (whole, of_old):
        for average in ("arithmetic", None):  # the network was calibrated for that mean alone
            assert MethodOptions(average=average).resolve(replace(META, calibration=fits)).temperature == 0.9
        both = fits | CALIBRATED.calibration
        assert str(MethodOptions().resolve(replace(META, calibration=both))) == str(FITTED)
        assert not MethodOptions(average="geometric").resolve(replace(META, calibration=fits)).calibrated
    still = replace(META, calibration={"vq-dnn, tau 8, motion": fit("vq-dnn", 0.9, tau=8.0)})
    assert not MethodOptions(average="arithmetic").resolve(still).calibrated
    assert MethodOptions(motion=False, tau=8.0).resolve(still).calibrated


def test_a_new_fit_takes_the_place_of_the_same_method_s_alone() -> None:
    geometric = {"tau": 1.25, "motion": True, "average": "geometric"}
    meta = replace(META, calibration={"vq-dnn": fit("vq-dnn", 2.0, **geometric), "dnn": fit("dnn", 3.0)})
    assert {
        key: fit["temperature"] for key, fit in meta.with_fit(FITTED, {"temperature": 0.9}).calibration.items()
    } == {"dnn": 3.0, "vq-dnn, tau 1.25, motion, geometric": 0.9}


def test_a_graph_file_computes_what_it_was_made_for() -> None:
    made = Method("vq-dnn", tau=1.25)
    MethodOptions(**{name: getattr(made, name) for name in settings(made)}).require(made, "m.onnx")
    for field, value in {"mode": "dnn", "samples": 2, "tau": 8.0, "motion": True, "calibrated": True}.items():
        message = refusal(dataclasses.replace(MethodOptions(), **{field: value}).require, made, "m.onnx")
        assert message.startswith(f"m.onnx: was made for {field} ")


RGB = ((1, 2, 3), (4, 5, 6))


def test_a_classifier_s_list_has_as_many_names_as_there_are_and_neither_colours_nor_void() -> None:
    classes = ClassList.of_names(f"n{number:08d}" for number in range(21_841))  # ImageNet-21k
    assert len(classes) == 21_841 and classes.names[-1] == "n00021840"
    assert classes.colors == () and classes.void is None
    assert "void" in refusal(lambda: classes.void_id)
    assert not classes.palette().any()


def test_a_segmentation_s_list_has_both() -> None:
    classes = ClassList(("a", "b"), RGB, 7)
    assert classes.void == classes.void_id == 7
    np.testing.assert_array_equal(classes.palette()[:3], [*RGB, (0, 0, 0)])
    assert ClassList(("a", "b"), RGB).void == 255 and CAMVID.void == 11


@pytest.mark.parametrize(
    ("names", "colors", "void", "says"),
    [
        (("a", "b"), RGB, None, "or neither"),
        (("a", "b"), (), 255, "2 class names need as many colours, got 0"),
        (("a", "b"), RGB[:1], 255, "got 1"),
        (("a", "b"), ((1, 2), (3, 4)), 255, "red, green, blue"),
        (("a", "b"), ((1, 2, 256), (3, 4, 5)), 255, "0..255"),
        (("a", "b"), RGB, 256, "0..255"),
        (("a", "b"), RGB, 1, "outside 0..1, got 1"),
        *((("a", "b"), RGB, bad, "whole numbers in 0..255") for bad in (math.inf, math.nan, 7.5, True, "7")),
        (("a", "b"), ((1, 2, 3.5), (4, 5, 6)), 255, "whole numbers in 0..255"),
        (("a", 5), RGB, 255, "names are 1 to 100 printable characters, got 5"),
        (("a",), (), None, "two or more different names, got ['a']"),
        ((), (), None, "got []"),
        (("a", *map(str, range(5000)), "a"), (), None, "got 'a' 2 times among 5002"),
    ],
)
def test_every_other_mixture_is_refused(names: tuple[str, ...], colors: tuple, void: int | None, says: str) -> None:  # type: ignore[type-arg]
    assert says in refusal(lambda: ClassList(names, colors, void))
