"""The robustness studies against the product's own loops, by hand, and against themselves: same seed, same pictures."""

import dataclasses
import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made.methods import opened_by_torch
from made.robustness import NAMES, classifier
from refusals import refusal

from steadyseg.core.corruptions.corruptions import corrupt
from steadyseg.core.frame import Frame
from steadyseg.seg.data.label_folder import open_split
from steadyseg.seg.evaluate import FrameMetrics, mark_stills
from steadyseg.studies.harness.pictures import Pictures, chosen_places, open_pictures
from steadyseg.studies.harness.target import TargetNetwork, open_targets, short_names
from steadyseg.studies.harness.window import WindowSmoothing
from steadyseg.studies.robustness.bands import study_bands
from steadyseg.studies.robustness.corruptions import means_of
from steadyseg.studies.robustness.flags import RobustnessJob, RobustnessOptions, no_progress
from steadyseg.studies.robustness.measures.perturbations import perturb
from steadyseg.studies.robustness.perturbations import study_perturbations
from steadyseg.studies.robustness.studies import robustness

MISSING = not find_spec("imagecorruptions")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(MISSING, reason="imagecorruptions-imaug is not installed")]

CPU = torch.device("cpu")


def studied(room: Path, models: str, data: str, *studies: Any, **options: Any) -> dict[str, Any]:
    paths = [str(room / f"{name}.safetensors") for name in models.split()]
    return run(paths, room / data, *studies, **options)["studies"]


def run(
    models: Sequence[str | Path], data: Path, *studies: Any, watch: Any = no_progress, **options: Any
) -> dict[str, Any]:
    job = RobustnessJob(tuple(map(str, models)), data, only=studies, options=RobustnessOptions(**options))
    return robustness(job, watch)


def opened(room: Path, model: str, data: str, count: int) -> tuple[list[TargetNetwork], Pictures]:
    subjects = open_targets([str(room / f"{model}.safetensors")], CPU)
    return subjects, open_pictures(room / data, "test", subjects, count, seed=0)


def only(rows: list[dict[str, Any]], **wanted: Any) -> dict[str, Any]:
    (row,) = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    return row


def product_loop(model: Path, frames: list[Frame], rule: Any = None, **how: Any) -> dict[str, Any]:
    """Metrics of these frames by the loop of `evaluate`, with another temporal mean if `rule` is given."""
    looker = opened_by_torch(model, keep_probs=True, **how)
    if rule:
        looker.module.smoothing = rule
    live = FrameMetrics.of(looker.classes)
    for frame in frames:
        live.update(frame, looker.step(frame))
    return live.result()


@pytest.mark.parametrize(("name", "severity"), [("gaussian_noise", 4), ("fog", 5)])
def test_a_row_of_a_segmentation_network_is_evaluate_on_the_corrupted_stills(room, name, severity):
    asked: dict[str, Any] = {"types": (name,), "severities": (severity,), "seed": 3}
    study = studied(room, "still", "stills", "corruptions", **asked)["corruptions"]
    frames = [
        dataclasses.replace(frame, image=corrupt(frame.image, name, severity, 3, frame.index))
        for frame in mark_stills(open_split(room / "stills", "test").frames())
    ]
    expected = product_loop(room / "still.safetensors", frames, mode="dnn")
    row = only(study["rows"], mode="dnn")
    for key in ("accuracy", "nll", "ece", "miou"):
        assert row[key] == pytest.approx(expected[key], abs=1e-6), key
    assert row["error"] == 1 - row["accuracy"] and row["accuracy"] != only(study["clean"], mode="dnn")["accuracy"]
    assert study["means"][0]["mean_miou"] == row["miou"] and study["means"][0]["mean_nll"] == row["nll"]


def test_a_row_of_a_classifier_is_its_softmax_on_the_corrupted_pictures(room: Path) -> None:
    study = studied(room, "drop", "cifar10", "corruptions", types=("fog",), severities=(4,), seed=1)["corruptions"]
    subjects, pictures = opened(room, "drop", "cifar10", 1000)
    subject = subjects[0]
    assert len(pictures) == 12
    worse = np.stack([corrupt(i, "fog", 4, 1, p) for i, p in zip(pictures.images, pictures.places, strict=True)])
    subject.switch("dnn", None)
    with torch.inference_mode():
        logits = subject.network(subject.normalize(torch.from_numpy(worse).permute(0, 3, 1, 2)))
    labels = torch.tensor([int(label) for label in pictures.labels])
    row = only(study["rows"], mode="dnn")
    assert row["accuracy"] == pytest.approx(float((logits.argmax(1) == labels).double().mean()))
    assert row["nll"] == pytest.approx(float(torch.nn.functional.cross_entropy(logits, labels)), rel=1e-4)
    assert [(r["mode"], r["samples"]) for r in study["clean"]] == [("dnn", 1), ("bnn", 1), ("bnn", 2), ("bnn", 5)]


def test_one_seed_is_one_report_and_another_is_not(room: Path) -> None:
    options: dict[str, Any] = {"types": ("snow",), "severities": (3,), "images": 6, "sample_counts": (2,)}
    first, again, other = (
        studied(room, "drop", "cifar10", "corruptions", "bands", costly_images=1, seed=seed, **options)
        for seed in (0, 0, 1)
    )
    for study in (*first.values(), *again.values()):
        study.pop("seconds")
    assert json.dumps(first) == json.dumps(again)
    assert first["corruptions"]["rows"] != other["corruptions"]["rows"]


def test_networks_see_the_same_corrupted_pictures(room: Path, tmp_path: Path) -> None:
    twin = tmp_path / "twin.safetensors"
    twin.write_bytes((room / "still.safetensors").read_bytes())
    paths = [room / "still.safetensors", twin, room / "sure.safetensors"]
    options: dict[str, Any] = {"types": ("impulse_noise",), "severities": (1, 5), "sample_counts": (2,)}
    study = run(paths, room / "stills", "corruptions", **options)["studies"]["corruptions"]
    by_model = {name: [row for row in study["rows"] if row["model"] == name] for name in ("still", "twin", "sure")}
    figures = {name: [(row["severity"], row["mode"], row["nll"]) for row in rows] for name, rows in by_model.items()}
    assert figures["still"] == figures["twin"] and len(figures["still"]) == 4
    assert len(figures["sure"]) == 2 and not set(figures["sure"]) & set(figures["still"])  # no dropout: dnn alone


def test_fewer_passes_are_the_first_of_more(room: Path) -> None:
    asked = [{"types": ("fog",), "severities": (1,), "sample_counts": samples} for samples in ((2,), (1, 2, 4))]
    few, many = (studied(room, "drop", "cifar10", "corruptions", **one)["corruptions"]["rows"] for one in asked)
    assert only(few, mode="bnn") == only(many, mode="bnn", samples=2)
    assert len({row["nll"] for row in many}) == 4


def test_a_smaller_part_of_the_pictures_is_in_the_larger_and_random() -> None:
    whole = [chosen_places(100, count, 5) for count in (100, 10, 3)]
    assert sorted(whole[0]) == list(range(100)) and whole[0] != sorted(whole[0])
    assert whole[1] == whole[0][:10] and whole[2] == whole[0][:3] and chosen_places(100, 10, 6) != whole[1]


def test_the_stream_is_the_products_own_loop(room: Path) -> None:
    study = studied(
        room, "still", "stills", "stream", types=("gaussian_noise",), severities=(2,), stream_frames=4, calibrated="off"
    )["stream"]
    split = open_split(room / "stills", "val")
    clean = list(split.frames())
    noisy = [dataclasses.replace(f, image=corrupt(f.image, "gaussian_noise", 2, 0, f.index)) for f in clean]
    for how, wanted in (
        ({"mode": "dnn"}, {"mode": "dnn"}),
        ({"mode": "vq-dnn", "rule": WindowSmoothing()}, {"mode": "vq-dnn", "motion": False, "window": 5, "tau": 1.25}),
        ({"mode": "vq-dnn", "motion": True}, {"mode": "vq-dnn", "motion": True, "window": None, "tau": 1.25}),
    ):
        for frames, severity in ((clean, 0), (noisy, 2)):
            expected = product_loop(room / "still.safetensors", frames, calibrated=False, **how)
            row = only(study["rows"], severity=severity, **wanted)
            for key in ("accuracy", "nll", "miou", "consistency"):
                assert row[key] == pytest.approx(expected[key], abs=1e-5), (how, severity, key)
    assert study["frame_list_hash"] == split.frame_hash and study["frames"] == 4
    assert only(study["rows"], mode="vq-bnn", severity=0)["nll"] != only(study["rows"], mode="dnn", severity=0)["nll"]


def test_a_network_without_dropout_has_no_random_stream(room: Path) -> None:
    study = studied(room, "sure", "stills", "stream", types=("fog",), severities=(1,), stream_frames=2)["stream"]
    assert {row["mode"] for row in study["rows"]} == {"dnn", "vq-dnn"}
    assert any("no vq-bnn" in note for note in study["notes"])


def test_consistency_along_a_made_sequence_is_counted_by_hand(room: Path) -> None:
    subjects, pictures = opened(room, "plain", "cifar10", 2)
    study = study_perturbations(subjects, pictures, RobustnessOptions(seed=7))
    for name, first in (("translate", False), ("gaussian_noise", True)):
        shares, confidence = [], []
        for number in range(2):
            frames = perturb(pictures.images[number], name, 7, pictures.places[number])
            ((_, seen),) = subjects[0].predict(list(frames), subjects[0].methods(), 0)
            labels, truth = seen.labels, int(pictures.labels[number])
            before = labels[:1].expand(len(labels) - 1) if first else labels[:-1]
            shares.append(float((before == labels[1:]).double().mean()))
            confidence.append(float((seen.probs[:, truth] / seen.confidence).mean()))
        row = only(study["rows"], perturbation=name)
        assert row["consistency"] == pytest.approx(np.mean(shares), abs=1e-9)
        assert row["relative_confidence"] == pytest.approx(np.mean(confidence), rel=1e-4)
        assert row["cec"] > 0 and row["cec_reference"] > 0
    (mean,) = study["means"]
    assert mean["consistency"] == pytest.approx(np.mean([row["consistency"] for row in study["rows"]]))
    assert len(study["rows"]) == 10 and any("replaces spatter" in note for note in study["notes"])


def test_pixels_that_moved_have_no_relative_confidence_and_stills_without_labels_none_at_all(room: Path) -> None:
    subjects, pictures = opened(room, "sure", "stills", 1)
    void = np.full_like(pictures.labels[0], 11)
    twice = dataclasses.replace(
        pictures, images=pictures.images * 2, labels=(*pictures.labels, void), places=pictures.places * 2
    )
    rows, same = (study_perturbations(subjects, part, RobustnessOptions())["rows"] for part in (pictures, twice))
    missing = {row["perturbation"] for row in rows if row["relative_confidence"] is None}
    assert missing == {"translate", "rotate", "tilt", "scale"} and rows == same
    assert 0 < only(rows, perturbation="brightness")["relative_confidence"] <= 1


def test_attacks_do_harm_and_more_steps_and_budget_do_more(room: Path) -> None:
    rows = studied(room, "plain", "cifar10", "attacks", eps=(0.5, 4.0))["attacks"]["rows"]
    by = {(row["attack"], row["eps_levels"]): row for row in rows}
    assert len(by) == len(rows) == 4
    assert by["pgd", 4.0]["attacked_accuracy"] < by["pgd", 4.0]["clean_accuracy"]
    assert by["pgd", 4.0]["attacked_accuracy"] <= by["fgsm", 4.0]["attacked_accuracy"]
    assert by["pgd", 4.0]["attack_success_rate"] >= by["pgd", 0.5]["attack_success_rate"]
    assert all(row["counted"] == 12 and row["gradient_samples"] == row["samples"] == 1 for row in rows)


def test_an_attack_does_not_know_the_masks_that_it_is_measured_with(room: Path) -> None:
    """With them, FGSM deceives 8 of the 9 right answers of this network, without them 1."""
    rows = studied(room, "drop", "cifar10", "attacks", sample_counts=(5,))["attacks"]["rows"]
    row = only(rows, attack="fgsm", mode="bnn")
    assert row["gradient_samples"] == 5 and row["clean_accuracy"] > 0.5 and row["attack_success_rate"] < 0.5


def test_attacks_on_pixels_leave_void_out(room: Path) -> None:
    study = studied(room, "still", "stills", "attacks", eps=(8.0,), costly_images=2)["attacks"]
    assert [row["counted"] for row in study["rows"]] == [2 * 44 * 64] * 2  # four lines of 48 are void
    assert all(row["attacked_accuracy"] < row["clean_accuracy"] for row in study["rows"])
    assert any("pixel space, max-norm 8/255" in note for note in study["notes"])


def test_the_sweep_has_every_band_of_noise_and_of_the_attack(room: Path) -> None:
    study = studied(room, "plain", "cifar10", "bands", noise=(0.3,), eps=(1.0, 4.0))["bands"]
    (clean,) = study["clean"]
    centres = [i / 10 for i in range(1, 10)]
    for noise, eps in ((0.3, None), (None, 4.0)):
        mine = [row for row in study["rows"] if row["noise_rms"] == noise and row["eps_levels"] == eps]
        assert [row["centre"] for row in mine] == centres
        assert all(row["accuracy_drop"] == clean["accuracy"] - row["accuracy"] for row in mine)
    assert len({row["nll"] for row in study["rows"]}) == 18
    assert max(row["accuracy_drop"] for row in study["rows"] if row["noise_rms"]) > 0


def test_a_grey_picture_is_refused_by_the_sweep(room: Path) -> None:
    subjects, pictures = opened(room, "plain", "cifar10", 2)
    grey = dataclasses.replace(pictures, images=(pictures.images[0], pictures.images[1][..., 0]))
    told = refusal(lambda: study_bands(subjects, grey, RobustnessOptions()))
    assert "(height, width, 3), RGB, got uint8 (32, 32)" in told


def test_the_same_pictures_are_not_told_apart(room: Path) -> None:
    study = studied(room, "still", "stills", "ood", ood=(str(room / "stills" / "test"),), sample_counts=(3,))["ood"]
    assert study["pictures"] == study["ood_pictures"] == 4 and study["sources"] == ["test"]
    scores = {(row["mode"], row["score"]): row for row in study["rows"]}
    for key in (("dnn", "entropy"), ("dnn", "abstains"), ("dnn", "lac")):
        row = scores[key]
        assert row["auroc"] == 0.5 and sorted(row["scores_data"]) == pytest.approx(sorted(row["scores_ood"]))
    assert {score for mode, score in scores if mode == "bnn"} == {"entropy", "abstains", "disagreement"}
    assert 1 <= scores["dnn", "lac"]["mean_data"] <= 11 and 0 <= scores["dnn", "abstains"]["mean_data"] <= 1
    assert any("still bnn x3: no prediction sets; it is calibrated for dnn" in note for note in study["notes"])


def test_a_calibration_that_is_off_leaves_sets_and_temperature_away(room: Path) -> None:
    options: dict[str, Any] = {"types": ("fog",), "severities": (1,), "ood": (str(room / "stills" / "val"),)}
    on, off = (
        studied(room, "still", "stills", "corruptions", "ood", calibrated=calibrated, **options)
        for calibrated in ("auto", "off")
    )
    names = [{row["score"] for row in found["ood"]["rows"] if row["mode"] == "dnn"} for found in (on, off)]
    assert names[0] - names[1] == {"lac"}
    warm, plain = (only(found["corruptions"]["clean"], mode="dnn") for found in (on, off))
    assert warm["accuracy"] == plain["accuracy"] and warm["nll"] != plain["nll"]


def test_a_classifier_sees_its_view_of_pictures_out_of_distribution(room: Path) -> None:
    study = studied(room, "drop", "cifar10", "ood", ood=(str(room / "stills" / "val"),), images=4)["ood"]
    row = only(study["rows"], score="disagreement")
    assert (row["mode"], row["samples"]) == ("bnn", 5) and len(row["scores_ood"]) == 4
    subjects, pictures = opened(room, "drop", "cifar10", 4)
    ((_, seen),) = subjects[0].predict([pictures.images[0]], subjects[0].methods()[:1], 0)
    plain = only(study["rows"], score="entropy", mode="dnn")
    p = seen.probs[0].double()
    assert plain["scores_data"][0] == pytest.approx(float(-(p * p.log()).sum()) / np.log(3), rel=1e-5)
    ranks = [(o > i) + (o == i) / 2 for o in row["scores_ood"] for i in row["scores_data"]]
    assert row["auroc"] == pytest.approx(np.mean(ranks))


def test_all_studies_run_where_nothing_is_named_and_the_notes_say_what_lacks(room: Path) -> None:
    options: dict[str, Any] = {"types": ("contrast",), "severities": (1,), "images": 2, "costly_images": 1}
    record = run([room / "plain.safetensors"], room / "cifar10", **options)
    assert list(record["studies"]) == ["corruptions", "perturbations", "attacks", "bands"]
    notes = " | ".join(record["notes"])
    assert "ood left out" in notes and "stream" not in notes and "plain: no dropout" in notes
    assert "2 of 12 pictures, drawn with seed 0" in notes and "first 1 of these" in notes
    assert record["models"][0].items() >= {"model": "plain", "architecture": "classifier", "dropout": False}.items()
    json.dumps(record)


def test_a_slip_of_a_later_study_is_said_before_the_first(room: Path) -> None:
    begun: list[str] = []

    def watch(items: list[Any], title: str) -> list[Any]:
        begun.append(title)
        return items

    models, data = [room / "plain.safetensors"], room / "cifar10"
    assert "'nowhere.mp4'" in refusal(lambda: run(models, data, ood=("nowhere.mp4",), watch=watch))
    assert not begun


def test_networks_of_two_kinds_or_of_other_classes_are_not_compared(room: Path, tmp_path: Path) -> None:
    other = classifier(tmp_path / "other.safetensors", names=("blue", "green", "black"))
    for second, words in ((room / "still.safetensors", "one labels pictures, the other pixels"), (other, "'black'")):
        assert words in refusal(lambda path=second: open_targets([str(room / "drop.safetensors"), str(path)], CPU))
    (tmp_path / "none").mkdir()
    told = refusal(lambda: run([other], room / "cifar10", "attacks"))
    assert "'red'" in told and str(room / "cifar10") in told and NAMES[2] == "red"


def test_names_are_short_where_they_stay_apart() -> None:
    assert short_names(["camvid-unet-s", "runs/a/model.safetensors", "x/b.safetensors"]) == ["camvid-unet-s", "a", "b"]
    assert short_names(["x/b.safetensors", "y/b.safetensors"]) == ["x/b.safetensors", "y/b.safetensors"]
    assert "named twice" in refusal(lambda: short_names(["a.safetensors", "a.safetensors"]))


def test_only_the_15_common_types_count_in_the_means() -> None:
    clean = {"model": "plain", "mode": "dnn", "samples": 1}

    def row(kind: str, error: float) -> dict[str, Any]:
        return {**clean, "type": kind, "error": error, "nll": 10 * error, "ece": error / 2}

    found = means_of(clean, [row("fog", 0.1), row("fog", 0.3), row("snow", 0.4), row("saturate", 0.9)])
    assert found["types"]["fog"]["error"] == pytest.approx(0.2) and found["types"]["saturate"]["nll"] == 9.0
    assert found["mean_error"] == pytest.approx(0.3) and found["mean_ece"] == pytest.approx(0.15)
    assert means_of(clean, [row("saturate", 0.9)])["mean_nll"] is None
