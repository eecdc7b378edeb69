"""The per-frame computation and its torch backend: the chain, the maps' bytes, gaps, resets and modes."""

import dataclasses
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made.methods import TorchSegmenter, fit, method, opened_by_torch
from made.pictures import picture
from torch import Tensor, nn

from steadyseg.core.classes import ClassList
from steadyseg.core.dropout import Dropout, set_dropout_active
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.method import MODE_NAMES, ModeName
from steadyseg.core.model.checkpoint import CheckpointMeta, save_checkpoint
from steadyseg.core.segmenter import segment
from steadyseg.core.temporal import TemporalSmoothing
from steadyseg.runtime.torch_backend import TorchBackend
from steadyseg.seg.networks.unet import UNet
from steadyseg.seg.options import UNetOptions
from steadyseg.seg.streaming import StreamingSegmenter

MEAN, STD = (0.4, 0.45, 0.5), (0.3, 0.25, 0.2)
CLASSES = ClassList(("a", "b", "c", "d"), ((255, 0, 0), (0, 255, 0), (0, 0, 255), (9, 9, 9)))
META = CheckpointMeta("unet", dataclasses.asdict(UNetOptions(channels=2)), CLASSES, 64, 96, MEAN, STD)
CPU = torch.device("cpu")


def network(seed: int = 0) -> UNet:
    torch.manual_seed(seed)
    unet = UNet(4, UNetOptions(channels=2, dropout=0.5))
    for module in unet.modules():
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
            nn.init.kaiming_normal_(module.weight)
    return unet.eval()


def segmenter(
    mode: ModeName = "vq-bnn", net: nn.Module | None = None, height: int = 64, precision: str = "fp32", **options: Any
) -> TorchSegmenter:
    module = StreamingSegmenter(net or network(), MEAN, STD, height, method(mode, **options))
    return TorchSegmenter(TorchBackend(module, META, CPU, keep_probs=True, precision=precision))


def frame(seed: int, index: int | None = None, **options: Any) -> Frame:
    index = seed if index is None else index
    return Frame(picture(seed, options.pop("height", 64), options.pop("width", 96)), index, index / 25, **options)


def probs(maps: Maps) -> np.ndarray:
    assert maps.probs is not None
    return maps.probs


class Fixed(nn.Module):
    """A network that answers with given logits, one after the other, whatever it sees."""

    def __init__(self, *logits: list[float]) -> None:
        super().__init__()
        self.dropout = Dropout(0.5)  # never called: the logits stand for what its draws would give
        self.logits, self.calls = [torch.tensor(one) for one in logits], 0

    def forward(self, x: Tensor) -> Tensor:
        now = self.logits[self.calls % len(self.logits)]
        self.calls += 1
        return now.view(1, -1, 1, 1).expand(-1, -1, *x.shape[-2:])


@pytest.mark.parametrize("mode", MODE_NAMES)
def test_forward_is_the_chain_of_its_stages_and_what_the_backend_runs(mode: ModeName) -> None:
    backend = segmenter(mode, network(), samples=3 if mode == "bnn" else 1)
    module, state, chained_state = backend.module, None, None
    for i in range(4):
        tensor = torch.from_numpy(picture(i, 64, 96))[None]
        with torch.inference_mode():
            torch.manual_seed(i)
            outputs, state = module(tensor, state)
            torch.manual_seed(i)
            now = module.predictor(module.preprocess(tensor))
            prediction, chained_state = module.smooth(now, chained_state, 1)
            chained = module.maps(prediction, 64, 96)
        torch.manual_seed(i)
        maps = backend.step(frame(i))
        for name in ("label", "confidence", "entropy", "disagreement"):
            assert torch.equal(getattr(outputs, name), getattr(chained, name))
            np.testing.assert_array_equal(getattr(outputs, name)[0].numpy(), getattr(maps, name))
        np.testing.assert_array_equal(outputs.prediction.probs[0].numpy(), probs(maps))


@pytest.mark.parametrize("mode", ["dnn", "bnn"])
def test_maps_are_the_statistics_of_the_prediction_rounded_to_bytes(mode: ModeName) -> None:
    backend = segmenter(mode, samples=4 if mode == "bnn" else 1)
    torch.manual_seed(1)
    maps = backend.step(frame(3))
    torch.manual_seed(1)
    with torch.inference_mode():
        made = backend.module.predictor(backend.module.preprocess(torch.from_numpy(picture(3, 64, 96))[None]))
    expected = {
        "confidence": made.confidence,
        "entropy": made.entropy / math.log(4),
        "disagreement": made.disagreement / math.log(4),
    }
    np.testing.assert_array_equal(maps.label, made.labels[0].numpy())
    for name, values in expected.items():
        scaled, found = 255 * values[0].double().numpy(), getattr(maps, name)
        assert found.dtype == np.uint8 and found.shape == (64, 96)
        assert np.abs(found - scaled).max() <= 0.501, name  # rounded, not cut off
    assert (maps.disagreement.max() > 0) == (mode == "bnn")
    np.testing.assert_allclose(probs(maps).sum(0), 1.0, atol=1e-5)


def test_a_uniform_prediction_fills_the_entropy_scale_and_a_certain_one_the_confidence_scale() -> None:
    maps = segmenter("dnn", Fixed([0.0, 0.0, 0.0, 0.0])).step(frame(0))
    assert (maps.entropy == 255).all() and (maps.confidence == 64).all() and (maps.disagreement == 0).all()
    maps = segmenter("dnn", Fixed([0.0, 0.0, 99.0, 0.0])).step(frame(0))
    assert (maps.label == 2).all() and (maps.confidence == 255).all() and (maps.entropy == 0).all()


@pytest.mark.parametrize("classes", [2, 4])
def test_members_certain_of_different_classes_disagree_by_the_whole_scale(classes: int) -> None:
    members = [[99.0 * (i == k) for i in range(classes)] for k in range(classes)]
    maps = segmenter("bnn", Fixed(*members), samples=classes).step(frame(0))
    assert (maps.disagreement == 255).all() and (maps.entropy == 255).all()
    assert (np.abs(maps.confidence.astype(float) - 255 / classes) <= 0.5).all()


@pytest.mark.parametrize(("height", "width"), [(64, 96), (1, 1), (37, 53), (301, 7), (90, 160)])
def test_maps_have_the_frame_s_size_whatever_it_is(height: int, width: int) -> None:
    maps = segmenter("vq-bnn").step(frame(1, height=height, width=width))
    for name in ("label", "confidence", "entropy", "disagreement"):
        found = getattr(maps, name)
        assert found.shape == (height, width) and found.dtype == np.uint8
    assert maps.label.max() < 4


@pytest.mark.parametrize(("height", "width"), [(1, 17), (0, 5)])
def test_frames_without_a_usable_size_are_refused(height: int, width: int) -> None:
    with pytest.raises((InputError, ValueError)) as caught:
        segmenter("vq-bnn").step(frame(1, height=height, width=width))
    assert len(str(caught.value).splitlines()) == 1


def test_labels_are_enlarged_without_new_ids_and_keep_their_place() -> None:
    class Left(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            logits = torch.zeros(1, 4, *x.shape[-2:])
            logits[:, 3, :, : x.shape[-1] // 2] = 9.0
            return logits

    maps = segmenter("dnn", Left()).step(frame(0, height=128, width=192))
    assert (maps.label[:, :96] == 3).all() and (maps.label[:, 96:] == 0).all()
    assert maps.confidence[0, 0] > 250 and maps.confidence[0, -1] == 64


@pytest.mark.parametrize("kind", ["reversed colours", "read-only", "every other pixel"])
def test_frames_may_be_views_and_read_only(kind: str) -> None:
    base = picture(1, 128, 192)
    view = {
        "reversed colours": base[:64, :96, ::-1],
        "read-only": base[:64, :96].copy(),
        "every other pixel": base[::2, ::2],
    }[kind]
    if kind == "read-only":
        view.flags.writeable = False
    maps, expected = (segmenter("dnn").step(Frame(image, 0, 0.0)) for image in (view, np.array(view, order="C")))
    np.testing.assert_array_equal(maps.entropy, expected.entropy)


@pytest.mark.parametrize(
    "image", [np.zeros((64, 96), np.uint8), np.zeros((64, 96, 3)), "drive.mp4"], ids=["grey", "float", "text"]
)
def test_what_is_no_picture_is_refused(image: Any) -> None:
    with pytest.raises(ValueError, match=r"must be \(H, W, 3\) uint8 RGB, got"):
        segmenter("dnn").step(image)


def test_pictures_without_a_time_are_the_next_frames() -> None:
    ours, theirs = segmenter("vq-dnn"), segmenter("vq-dnn")
    pictures = [frame(number).image for number in range(5)]
    first, *others = (probs(ours.step(image)) for image in pictures[:3])
    numbered = [Frame(image, index, index / 25) for index, image in enumerate(pictures)]
    for found, one in zip((first, *others), numbered, strict=False):
        np.testing.assert_array_equal(found, probs(theirs.step(one)))
    last = list(segment(iter(pictures[3:]), ours))  # goes on where `step` has ended
    assert [(one.index, one.time_s) for one, _ in last] == [(3, 0.12), (4, 0.16)] and not ours.resets
    np.testing.assert_array_equal(probs(last[0][1]), probs(theirs.step(numbered[3])))
    ours.reset()
    np.testing.assert_array_equal(probs(ours.step(pictures[0])), first)


def test_skipped_indices_decay_by_the_gap() -> None:
    indices = [4, 5, 8, 10]
    single, stream = segmenter("dnn"), segmenter("vq-dnn")
    alone = [probs(single.step(frame(i, index))) for i, index in enumerate(indices)]
    last = [probs(stream.step(frame(i, index))) for i, index in enumerate(indices)][-1]
    ages = [10 - index for index in indices]
    weights = [math.exp(-age / 1.25) for age in ages]
    expected = sum(weight * one for weight, one in zip(weights, alone, strict=True)) / sum(weights)
    np.testing.assert_allclose(last, expected, atol=1e-6)
    assert not stream.resets


@pytest.mark.parametrize(
    ("second", "cause"),
    [
        (frame(1, 1, discontinuity=True), "discontinuity"),
        (dataclasses.replace(frame(1, 1), image=frame(1).image[::-1].copy()), "cut"),
        (frame(1, 0), "discontinuity"),
        (frame(1, 1, height=48), "size_change"),
    ],
    ids=["flag", "cut", "same index", "other height"],
)
def test_a_break_in_the_stream_starts_anew_and_is_counted(second: Frame, cause: str) -> None:
    stream, alone = segmenter("vq-dnn"), segmenter("dnn")
    stream.step(frame(0, 0, discontinuity=True))  # the first frame is no break
    np.testing.assert_array_equal(probs(stream.step(second)), probs(alone.step(second)))
    assert stream.resets == {cause: 1}
    third = dataclasses.replace(
        second, image=255 - (255 - second.image) // 2, index=second.index + 1, discontinuity=False
    )
    assert not np.array_equal(probs(stream.step(third)), probs(alone.step(third)))  # and smooths again from there
    assert stream.resets == {cause: 1}


def test_a_reset_forgets_earlier_frames() -> None:
    stream, alone = segmenter("vq-dnn"), segmenter("dnn")
    stream.step(frame(0))
    stream.reset()
    np.testing.assert_array_equal(probs(stream.step(frame(1))), probs(alone.step(frame(1))))
    assert not stream.resets  # asked for, not a break


def test_vq_bnn_draws_one_new_mask_a_frame_and_becomes_steadier() -> None:
    """The same picture again and again: what changes from frame to frame is the dropout alone."""
    torch.manual_seed(0)
    stream, single = segmenter("vq-bnn", tau=10.0), segmenter("bnn", samples=1)
    smooth = [probs(stream.step(frame(7, index))) for index in range(16)]
    raw = [probs(single.step(frame(7, index))) for index in range(16)]
    change = [np.mean([np.abs(a - b).mean() for a, b in itertools.pairwise(s[10:])]) for s in (smooth, raw)]
    assert 0 < change[0] < change[1] / 4
    assert stream.step(frame(7, 16)).disagreement.max() > 0 == single.step(frame(7, 16)).disagreement.max()


@pytest.mark.parametrize("mode", MODE_NAMES)
def test_the_seed_decides_modes_with_dropout_and_no_other(mode: ModeName) -> None:
    results = []
    for seed in (5, 5, 6):
        stream = segmenter(mode, network(), samples=2 if "bnn" in mode else 1)
        torch.manual_seed(seed)
        results.append(np.stack([probs(stream.step(frame(i))) for i in range(2)]))
    np.testing.assert_array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2]) == ("bnn" not in mode)


@pytest.mark.parametrize(("mode", "samples"), [("dnn", 1), ("vq-dnn", 1), ("bnn", 30), ("vq-bnn", 1)])
def test_every_mode_has_its_published_number_of_samples(mode: ModeName, samples: int) -> None:
    net = Fixed([0.0, 1.0, 2.0, 3.0])
    segmenter(mode, net).step(frame(0))
    assert net.calls == samples


def test_bf16_is_the_networks_alone_and_not_the_means() -> None:
    net = network()
    steady = segmenter("vq-dnn", net, precision="bf16")
    single = segmenter("dnn", net, precision="bf16")
    seen = [(probs(steady.step(frame(i))), probs(single.step(frame(i)))) for i in range(4)]
    weights = np.exp(-np.arange(4)[::-1] / 1.25)
    expected = np.tensordot(weights / weights.sum(), np.stack([one for _, one in seen]), 1)
    np.testing.assert_allclose(seen[-1][0], expected, atol=1e-6)
    apart = np.abs(probs(segmenter("dnn", net).step(frame(3))) - seen[-1][1])
    assert 0 < apart.mean() < 0.03 and seen[-1][1].dtype == np.float32


def test_probabilities_come_on_request_alone_and_times_are_taken() -> None:
    stream = TorchSegmenter(TorchBackend(StreamingSegmenter(network(), MEAN, STD, 64, method()), META, CPU))
    assert stream.step(frame(0)).probs is None
    assert list(stream.clock.summary()) == ["motion", "preprocess", "network", "smoothing"]


def checkpoint(folder: Path, **changes: Any) -> Path:
    path = folder / "model.safetensors"
    save_checkpoint(path, network().state_dict(), dataclasses.replace(META, **changes))
    return path


def test_an_opened_checkpoint_is_the_network_that_was_saved(tmp_path: Path) -> None:
    opened = opened_by_torch(checkpoint(tmp_path), mode="vq-dnn", keep_probs=True)
    built = segmenter("vq-dnn", network())
    for i in range(3):
        np.testing.assert_array_equal(probs(opened.step(frame(i))), probs(built.step(frame(i))))
    assert opened.classes == CLASSES and (opened.backend, opened.device) == (
        f"torch {torch.__version__.split('+')[0]} fp32",
        "cpu",
    )


def test_the_size_comes_from_the_checkpoint_unless_asked_otherwise(tmp_path: Path) -> None:
    path = checkpoint(tmp_path)
    sizes = [probs(opened_by_torch(path, size=s, keep_probs=True).step(frame(0))).shape for s in (None, 32)]
    assert sizes == [(4, 64, 96), (4, 32, 64)]  # 48 is as far from 32 as from 64; Python rounds 1.5 to 2


def test_the_decay_reaches_the_temporal_mean(tmp_path: Path) -> None:
    path = checkpoint(tmp_path)
    opened = opened_by_torch(path, mode="vq-dnn", tau=3.0)
    assert opened.module.smoothing == TemporalSmoothing(3.0)
    with pytest.raises(InputError, match="tau"):
        opened_by_torch(path, tau=0.0)


@pytest.mark.parametrize(("calibrated", "temperature"), [(None, 2.0), (True, 2.0), (False, 1.0)])
def test_a_temperature_is_used_unless_refused(tmp_path: Path, calibrated: bool | None, temperature: float) -> None:
    path = checkpoint(tmp_path, calibration={"dnn": fit("dnn", 2.0), "vq-dnn, tau 1.25": fit("vq-dnn", 3.0, tau=1.25)})
    opened = opened_by_torch(path, mode="dnn", calibrated=calibrated, keep_probs=True)
    assert opened.method.temperature == temperature and opened.method.calibrated == (temperature != 1.0)
    with torch.inference_mode():
        quiet = network()
        set_dropout_active(quiet, False)
        batch = opened.module.preprocess(torch.from_numpy(picture(0, 64, 96))[None])
        expected = torch.softmax(quiet(batch) / temperature, 1)[0].numpy()
    np.testing.assert_allclose(probs(opened.step(frame(0))), expected, atol=1e-6)


def test_a_temperature_may_be_changed_later() -> None:
    net = network()
    backend = segmenter("bnn", samples=3).at_temperature(2.0)
    expected = segmenter("bnn", net, samples=3, temperature=2.0)
    results = []
    for one in (backend, expected):
        torch.manual_seed(0)
        assert one.method.temperature == 2.0
        results.append(probs(one.step(frame(0))))
    np.testing.assert_array_equal(*results)
