"""What a method's options mean, and which fitted temperature is used with which method."""

import dataclasses
from dataclasses import replace

import pytest
from made.methods import fit
from refusals import refusal

from steadyseg.core.classes import CAMVID
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
