"""Coarse labels, sets of allowed classes: reader, loss, metrics, fits, mixture and choices, against closed forms."""

import copy
import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from refusals import refusal

from steadyseg.core.classes import CAMVID, ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.evaluation.conformal import ConformalScores
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.evaluation.temperature import GRID, TemperatureScan, grid_tensor
from steadyseg.core.training.config import TrainConfig
from steadyseg.core.training.distributed import SINGLE_PROCESS
from steadyseg.seg.data.class_file import classes_of
from steadyseg.seg.data.coarse import as_sets, is_right, pack_label
from steadyseg.seg.data.label_folder import open_split
from steadyseg.seg.data.moving_stills import still_clip
from steadyseg.seg.loss import coarse_loss
from steadyseg.seg.mixture import mixed_order
from steadyseg.seg.options import SegTrainConfig, check_training
from steadyseg.seg.train import deployed_network, read_initial
from steadyseg.seg.within import Teacher, choose_within
from steadyseg.street.drive import Street

ABC = ClassList(("a", "b", "c"), ((1, 0, 0), (0, 1, 0), (0, 0, 1)), 255)
PROBS = torch.tensor([[0.5, 0.3, 0.2], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6], [0.6, 0.3, 0.1]]).T[None, :, None]  # (1,3,1,4)
SETS = torch.tensor([[[0b011, 0b101, 0b100, 0]]], dtype=torch.int32)  # {a, b}, {a, c}, {c}, void


def folder(root: Path, record: object, ids: tuple[int, ...] = (0, 5, 255)) -> Path:
    for name in ("train", "trainannot"):
        (root / name).mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (len(ids), 1)).save(root / "train" / "one.png")
    Image.fromarray(np.array([ids], np.uint8)).save(root / "trainannot" / "one.png")
    (root / "classes.json").write_text(json.dumps(record))
    return root


def test_the_reader_gives_sets_and_the_folder_names_its_classes(tmp_path: Path) -> None:
    root = folder(tmp_path, {"allows": {"0": ["Road"], "5": ["Tree", "Building"]}})
    _, label = open_split(root, "train", CAMVID)[0]
    assert label.dtype == np.int32 and label.tolist() == [[1 << 3, 1 << 1 | 1 << 5, 0]]
    assert classes_of(root, None).names == ("Road", "Tree", "Building")


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"allows": {"0": ["Rode"]}}, "'Rode'"),
        ({"allows": {"0": ["Road"], "5": []}}, "one or more classes"),
        ({"allows": {"0": ["Road"]}}, "ids \\[5\\]"),
        ({"allows": {"0": ["Road"], "x": ["Sky"]}}, "'x'"),
        ({"allows": {"0": ["Road"], "255": ["Sky"]}}, "without void"),
        ({"allows": ["Road"]}, "allows"),
    ],
)
def test_bad_sets_are_one_line_with_the_files_name(tmp_path: Path, record: object, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        open_split(folder(tmp_path, record), "train", CAMVID)[0]
    assert "\n" not in str(caught.value) and str(tmp_path) in str(caught.value)


def test_labels_change_between_ids_and_sets() -> None:
    ids = np.array([[0, 2, 255]], np.uint8)
    assert as_sets(ids, ABC).tolist() == [[1, 4, 0]]
    assert is_right(np.array([[0, 1, 2]], np.uint8), np.array([[3, 5, 4]], np.int32)).tolist() == [[True, False, True]]


def test_metrics_take_any_allowed_class_as_right() -> None:
    metrics = StreamingMetrics(3, 255)
    metrics.update(PROBS, SETS)
    result = metrics.result()
    assert result["valid_samples"] == 3 and result["accuracy"] == pytest.approx(2 / 3)
    assert result["nll"] == pytest.approx(-(math.log(0.8) + math.log(0.3) + math.log(0.6)) / 3)
    # squared errors: 1 - P(set), and the probabilities outside the set
    assert result["brier"] == pytest.approx((0.2**2 + 0.2**2 + 0.7**2 + 0.7**2 + 0.4**2 + 0.1**2 + 0.3**2) / 3)
    assert result["iou"] == [None, None, None]  # c stands beside a in one label
    assert result["class_pixels"] == [2, 1, 2]


def test_iou_is_of_classes_that_stand_alone() -> None:
    metrics = StreamingMetrics(3, 255)
    metrics.update(PROBS, torch.tensor([[[0b011, 0b100, 0b100, 0b011]]], dtype=torch.int32))
    assert metrics.result()["iou"] == [None, None, 0.5] and metrics.result()["miou"] == 0.5


def test_sets_of_one_class_measure_as_ids_do() -> None:
    by_id, by_set = StreamingMetrics(3, 255), StreamingMetrics(3, 255)
    ids = torch.tensor([[[0, 0, 2, 255]]])
    for _ in range(2):
        by_id.update(PROBS, ids, continues=by_id.valid_samples > 0)
        by_set.update(PROBS, torch.tensor([[[1, 1, 4, 0]]], dtype=torch.int32), continues=by_set.valid_samples > 0)
    assert by_set.result() == by_id.result()


def test_a_temperature_is_fitted_to_the_probability_of_the_sets() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 1, 4000, generator=generator)
    drawn = torch.distributions.Categorical(logits=logits.movedim(0, -1) / 1.7).sample()[0]
    sets = (1 << drawn | torch.where(drawn < 2, 3, 0)).to(torch.int32)[None]  # a and b are told apart by no label
    scan = TemperatureScan(3, 255)
    scan.update((logits[None] / grid_tensor(torch.device("cpu"), GRID)).softmax(1), sets)
    assert scan.fit().temperature == pytest.approx(1.7, rel=0.15)


def test_a_prediction_set_must_hold_the_likeliest_allowed_class() -> None:
    of_sets, of_ids = ConformalScores(255), ConformalScores(255)
    of_sets.update(PROBS[0].repeat(1, 1, 50), SETS[0].repeat(1, 50))
    of_ids.update(PROBS[0].repeat(1, 1, 50), torch.tensor([[0, 0, 2, 255]]).repeat(1, 50))
    assert of_sets.threshold(0.9) == of_ids.threshold(0.9)


def test_the_loss_and_its_gradient_are_the_closed_form() -> None:
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(1, 3, 1, 4, dtype=torch.double, generator=generator, requires_grad=True)
    weights = torch.tensor([1.0, 3.0, 0.5], dtype=torch.double)
    choice = np.zeros((1, 4, 2), np.uint8)
    choice[0, 0], choice[0, 1] = (1, 204), (2, 102)  # b with a share of 0.8; c with 0.4, which teaches nothing
    packed = torch.from_numpy(pack_label(SETS[0].numpy(), choice))[None]
    loss, weight = coarse_loss(logits, packed, weights, 0.5)
    p = logits.softmax(1)[0, :, 0]
    q = p[1, 0] / (p[0, 0] + p[1, 0])
    taught = -0.8 * q.log() - 0.2 * (1 - q).log()
    expected = 2 * (-(p[0, 0] + p[1, 0]).log() + 0.5 * taught) - 0.75 * (p[0, 1] + p[2, 1]).log() - 0.5 * p[2, 2].log()
    assert float(weight) == pytest.approx(2 + 0.75 + 0.5) and loss.item() == pytest.approx(expected.item())
    slopes = [torch.autograd.grad(one, logits, retain_graph=True)[0] for one in (loss, expected)]
    torch.testing.assert_close(*slopes)


def test_the_maps_of_a_teacher_are_probabilities_at_its_own_height_of_picture_and_mirror_image() -> None:
    frame, teacher = (
        Street(seed=3, height=180, width=240).frame(40),
        Teacher("street-tiny", CAMVID, torch.device("cpu")),
    )
    maps = teacher(frame.image)
    assert frame.label is not None and maps.shape == (len(CAMVID), 180, 256) and maps.dtype == torch.uint8
    assert (maps.sum(0, dtype=torch.int64) - 255).abs().max() <= len(CAMVID) / 2  # each of the 11 is rounded
    found = torch.nn.functional.interpolate(maps[None].float(), frame.label.shape, mode="nearest-exact")[0].argmax(0)
    known = frame.label != CAMVID.void
    assert (found.numpy() == frame.label)[known].mean() > 0.75
    mirrored = teacher(np.ascontiguousarray(frame.image[:, ::-1])).flip(-1)
    assert (maps.int() - mirrored.int()).abs().max() <= 12  # bfloat16 has 8 bits
    other = dataclasses.replace(CAMVID, names=CAMVID.names[::-1])
    assert "street-tiny has other classes" in refusal(Teacher, "street-tiny", other, torch.device("cpu"))


def test_a_teacher_chooses_inside_the_set() -> None:
    probs = (255 * PROBS[0]).round().to(torch.uint8)
    chosen = choose_within(probs, SETS[0].numpy())
    # {a, b}: a with 128 of 204. {a, c}: a with 51 of 77. One class or void leaves nothing to choose.
    assert chosen[0, :2].tolist() == [[0, 255 * 128 // 204], [0, 255 * 51 // 77]] and not chosen[0, 2:, 1].any()


def test_sources_have_equal_shares_and_come_whole_before_they_repeat() -> None:
    sizes, config = (3, 9, 6), TrainConfig(batch_size=3)
    epochs = [mixed_order(sizes, config, epoch, SINGLE_PROCESS) for epoch in range(3)]
    assert all(len(order) == 18 and sorted(np.digitize(order[:3], [3, 12]).tolist()) == [0, 1, 2] for order in epochs)
    drawn = np.concatenate(epochs)
    assert [int((drawn == picture).sum()) for picture in range(18)] == [6] * 3 + [2] * 9 + [3] * 6


def test_the_saved_weights_are_the_mean_with_the_initial_ones() -> None:
    config = SegTrainConfig(init="street-tiny", keep_initial=0.3)
    initial = read_initial("street-tiny").network()
    trained = copy.deepcopy(initial)
    with torch.no_grad():
        for tensor in trained.state_dict().values():
            tensor.add_(10)
    saved = deployed_network(config, trained).state_dict()
    for name, tensor in initial.state_dict().items():
        torch.testing.assert_close(saved[name], tensor + (7.0 if tensor.is_floating_point() else 10))
    assert "give --init" in refusal(check_training, SegTrainConfig(keep_initial=0.3))


def test_sets_are_warped_and_stay_sets() -> None:
    label = np.full((40, 60), 1 << 10 | 1 << 4, np.int32)
    (_, earlier), (_, last) = still_clip(np.zeros((40, 60, 3), np.uint8), label, 11, seed=1, last=2)
    assert (last == label).all() and {0, int(label[0, 0])} >= {*np.unique(earlier).tolist()}
