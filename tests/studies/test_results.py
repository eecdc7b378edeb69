"""One pass over the frames gives every row the metrics of a `steadyseg evaluate` of its own."""

import json
from pathlib import Path

import pytest
import torch
from made.methods import TorchSegmenter

from steadyseg.core.classes import CAMVID
from steadyseg.core.method import MethodOptions
from steadyseg.core.model.checkpoint import CheckpointMeta, save_checkpoint
from steadyseg.core.model.model import REPLACED
from steadyseg.runtime.torch_executor import torch_executor
from steadyseg.seg.evaluate import FrameMetrics, seed_frames
from steadyseg.seg.networks.unet import UNet
from steadyseg.seg.options import UNetOptions
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.street.drive import Street
from steadyseg.studies.harness.networks import rests_on
from steadyseg.studies.harness.study import PAGES, Cache, data_digest
from steadyseg.studies.results.front import SHOWN, front_digest
from steadyseg.studies.results.rule import KEYS, METHODS, measure, rule_digest, rule_job

pytestmark = pytest.mark.slow

HEIGHT, WIDTH, FRAMES = 64, 96, 4
OF_THE_PRODUCT = {name: method for name, method in METHODS.items() if name not in ("vq-dnn", "vq-bnn")}
"""Without the published window, which has tests of its own."""


def saved(folder: Path) -> Path:
    torch.manual_seed(1)
    options = UNetOptions(channels=4, depth=3, dropout=0.3, dropout_places=("enc2", "dec4"))
    network = UNet(len(CAMVID), options)
    record = {name: getattr(options, name) for name in options.__dataclass_fields__}
    meta = CheckpointMeta("unet", record, CAMVID, HEIGHT, WIDTH, (0.4, 0.4, 0.4), (0.3, 0.3, 0.3))
    save_checkpoint(folder / "network.safetensors", network.state_dict(), meta)
    return folder / "network.safetensors"


def street() -> Street:
    return Street(seed=2, height=HEIGHT, width=WIDTH)


def alone(path: Path, has_masks: bool, smoothed: bool) -> dict:
    """The figures of the product's own method."""
    mode = ("vq-" if smoothed else "") + ("bnn" if has_masks else "dnn")
    memory = (8.0, True) if smoothed else (None, None)
    resolved = MethodOptions(mode, 1, *memory, "arithmetic").resolve()  # type: ignore[arg-type]
    segmenter = TorchSegmenter(torch_executor(read_segmenter(path), resolved, keep_probs=True))
    live = FrameMetrics.of(CAMVID)
    for frame in seed_frames(street().frames(FRAMES), 0):
        live.update(frame, segmenter.step(frame))
    return live.result()


def test_every_row_of_a_network_is_what_it_is_alone(tmp_path: Path) -> None:
    path = saved(tmp_path)
    found = measure(read_segmenter(path), street().frames(FRAMES), tuple(METHODS))
    for name, (has_masks, smoothing) in OF_THE_PRODUCT.items():
        theirs = alone(path, has_masks, smoothing is not None)
        for key in KEYS:
            assert found[name][key] == pytest.approx(theirs[key], abs=1e-6), (name, key)


def test_the_committed_rows_are_of_these_checkpoints_and_this_data(data_dir: Path) -> None:
    digest = data_digest(data_dir / "camvid")
    kept = Cache(PAGES / "results" / "record.json")
    included = [name for name in SHOWN if name not in REPLACED]
    assert not [name for name in included if kept.get(rule_job(name), rule_digest(name, digest)) is None]
    decay = Cache(PAGES / "results" / "decay.json")
    assert not [name for name in included if decay.get(name, rests_on(name, digest)) is None]
    front = json.loads((PAGES / "results" / "front.json").read_text())
    assert {name: front[name]["digest"] for name in included} == {name: front_digest(name, digest) for name in included}
