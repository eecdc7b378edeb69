"""What a classifier knows of its training domain: fitted by a command, told by `evaluate` and `robustness`."""

import contextlib
import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from made.classifier import save_pictures
from PIL import Image

from steadyseg.app.cli import main
from steadyseg.classification.data.open import open_split_of
from steadyseg.classification.familiarity import with_cameras
from steadyseg.classification.pretrained import read_classifier
from steadyseg.core.dropout import set_dropout_active
from steadyseg.core.errors import InputError
from steadyseg.core.familiarity.record import FamiliarityRecord
from steadyseg.core.familiarity.stored import familiarity_head
from steadyseg.core.method import Method
from steadyseg.core.model.checkpoint import read_meta
from steadyseg.studies.harness.target import open_targets

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_pictures(tmp_path_factory.mktemp("data") / "animals", per_class=40)


@pytest.fixture(scope="module")
def calibration(tmp_path_factory: pytest.TempPathFactory, data: Path) -> tuple[Path, str]:
    """A small classifier that knows its training domain, and what `calibrate` printed."""
    run, printed = tmp_path_factory.mktemp("knowing") / "run", io.StringIO()
    small = "--channels 4 --epochs 9 --hold-out 0.5 --dropout 0.1 --config loaders=0 size=32".split()
    assert main(["train", "classification", "--data", str(data), "--run", str(run), *small]) == 0
    flags = ["--split", "held-out", "--mode", "dnn", "--familiarity", "-o", str(run / "k.safetensors")]
    with contextlib.redirect_stdout(printed):
        assert main(["calibrate", str(run / "model.safetensors"), "--data", str(data), *flags]) == 0
    return run / "k.safetensors", printed.getvalue()


@pytest.fixture(scope="module")
def knowing(calibration: tuple[Path, str]) -> Path:
    return calibration[0]


def evaluated(model: Path, data: Path, *flags: str) -> dict[str, object]:
    report = model.parent / "report.json"
    command = ["evaluate", str(model), "--data", str(data), "--split", "test", "--mode", "dnn", "--report", str(report)]
    assert main([*command, "--overwrite", *flags]) == 0
    return dict(json.loads(report.read_text()))


def test_evaluate_tells_its_own_pictures_from_others(knowing: Path, data: Path, tmp_path: Path) -> None:
    """Others: from black to white, without noise."""
    own = evaluated(knowing, data)
    assert own["novel_share"] <= 0.1 and 0.2 < own["familiarity_p50"] < 0.8  # type: ignore[operator]
    assert own["conformal"]["lac"]["coverage"] > 0.8  # type: ignore[index]
    other = save_pictures(tmp_path / "ramps", per_class=1)
    for file in other.rglob("*.png"):
        Image.fromarray(np.repeat(np.linspace(0, 255, 40).astype(np.uint8), 120).reshape(40, 40, 3)).save(file)
    assert evaluated(knowing, other)["novel_share"] > 0.9  # type: ignore[operator]
    assert "novel_share" not in evaluated(knowing, data, "--members", str(knowing))
    (subject,) = open_targets([str(knowing)], torch.device("cpu"))
    ((_, seen),) = subject.predict([np.zeros((32, 32, 3), np.uint8)], [Method("dnn")], seed=0)
    assert seen.scores is not None


def test_held_out_pictures_can_be_fitted_again_and_by_passes(knowing: Path, data: Path, tmp_path: Path) -> None:
    """They are the pictures that training left out. Dropout passes need no temperature of a single one."""
    record = read_meta(knowing).calibration["dnn"]
    assert (record["split"], record["frames"]) == ("held-out", 120)
    assert evaluated(knowing, data, "--split", "held-out")["frame_list_hash"] == record["frame_list_hash"]
    again, given = tmp_path / "again.safetensors", ["--data", str(data), "--split", "held-out"]
    assert main(["calibrate", str(knowing), *given, "--mode", "dnn", "--coverage", "0.7", "-o", str(again)]) == 0
    assert evaluated(again, data)["conformal"]["coverage_asked"] == 0.7  # type: ignore[index]
    drawn, flags = tmp_path / "drawn.safetensors", ["--mode", "bnn", "--samples", "3"]
    assert main(["calibrate", str(knowing.with_name("model.safetensors")), *given, *flags, "-o", str(drawn)]) == 0
    assert main(["evaluate", str(drawn), "--data", str(data), "--split", "test", *flags, "--calibrated", "on"]) == 0


def test_the_score_is_the_distance_to_the_nearest_class(knowing: Path, data: Path) -> None:
    """By NumPy from the same features, with a covariance of its own."""
    model = read_classifier(knowing)
    network, meta, head = model.network(), model.meta, familiarity_head(model, Method("dnn"))
    assert head is not None
    set_dropout_active(network, False)
    features, labels = [], []
    network.get_submodule("stage4").register_forward_hook(
        lambda _, __, given: features.append(given[0].double().mean((1, 2)).numpy())
    )
    train = open_split_of(data, "trained", meta, str(knowing))
    for image, label in with_cameras(train, 32, lambda items, _: items, ""):
        pixels = torch.tensor(image).permute(2, 0, 1)[None] / 255.0
        with torch.no_grad():
            network((pixels - torch.tensor(meta.mean).reshape(3, 1, 1)) / torch.tensor(meta.std).reshape(3, 1, 1))
        labels.append(label)
    x, y = np.stack(features), np.array(labels)
    means = np.stack([x[y == c].mean(0) for c in range(6)])
    within = (x - means[y]).T @ (x - means[y]) / len(x)
    share = FamiliarityRecord.read(meta.familiarity).about["shrinkage"]["stage4"]
    within = (1 - share) * within + share * np.trace(within) / len(within) * np.eye(len(within))
    gaps = x[5] - means
    wanted = np.log(np.einsum("kc,cd,kd->k", gaps, np.linalg.inv(within), gaps).min() / len(within))
    found = head.stages[-1](torch.from_numpy(x[5:6]).float())
    assert float(found) == pytest.approx(wanted, abs=0.01)


def test_the_share_of_novel_views_and_its_interval_are_printed(calibration: tuple[Path, str]) -> None:
    """11 of 240 views of 120 held-out pictures are novel, (1 + 11) / 241 < 5 %; Clopper-Pearson."""
    said = "of 240 held-out views 4.6% are novel (95 % interval, were they independent: 2.3% to 8.1%)"
    assert said in calibration[1]


def test_a_graph_file_says_that_it_knows_nothing_of_it(knowing, tmp_path, monkeypatch, capsys):
    def traced(*_: object) -> None:
        raise InputError("the rest of an export says nothing of it")

    monkeypatch.setattr("steadyseg.app.export.classifier.trace", traced)
    assert main(["export", str(knowing), "-o", str(tmp_path / "c.onnx")]) == 2
    assert "no familiarity" in capsys.readouterr().err.replace("\n", " ")
