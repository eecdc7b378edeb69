"""The picture of prediction set sizes: exact for known probabilities, in a written video, refused where nothing was
fitted."""

from pathlib import Path

import av
import numpy as np
import pytest
from made.methods import opened_by_torch

from steadyseg.app.cli import main
from steadyseg.app.video.render import LARGEST_SET, draw_set_sizes
from steadyseg.core.frame import Maps
from steadyseg.core.model.checkpoint import load_checkpoint, save_checkpoint
from steadyseg.core.segmenter import segment
from steadyseg.seg.street.drive import Street


def maps_of(probs: np.ndarray) -> Maps:
    none = np.zeros(probs.shape[1:], np.uint8)
    return Maps(none, none, none, none, probs.astype(np.float32))


def test_shades_count_the_classes_within_the_threshold() -> None:
    sure = [0.91] + [0.01] * 9  # 1 - 0.94 = 0.06: one class reaches it
    torn = [0.5, 0.4] + [0.0125] * 8  # two classes
    lost = [0.1] * 10  # all ten, drawn as LARGEST_SET
    shades = draw_set_sizes(maps_of(np.array([[sure, torn, lost]]).transpose(2, 0, 1)), 0.94)
    assert shades.tolist() == [[0, 255 // (LARGEST_SET - 1), 255]]


@pytest.mark.slow
def test_a_video_shows_them(model: str, tmp_path: Path) -> None:
    """With the threshold at the median of the second class's probability, half of the pixels have two classes or
    more."""
    segmenter = opened_by_torch(model, mode="vq-dnn", motion=True, keep_probs=True)
    _, maps = next(iter(segment(Street().frames(1), segmenter)))
    assert maps.probs is not None
    second = float(np.median(np.sort(maps.probs, axis=0)[-2]))
    tensors, meta = load_checkpoint(Path(model))
    conformal = {"coverage": 0.9, "lac": 1.0 - second, "aps": 0.9}
    fitted = (meta.fit(segmenter.method) or {}) | {"conformal": conformal}
    model = str(tmp_path / "m.safetensors")
    save_checkpoint(Path(model), tensors, meta.with_fit(segmenter.method, fitted))
    pictures = {}
    for view in ("set-size", "uncertainty"):
        path = tmp_path / f"{view}.mp4"
        flags = ["-o", str(path), "--model", model, "--view", view, "--max-frames", "2", "--executor", "torch"]
        assert main(["video", "street", *flags]) == 0
        with av.open(str(path)) as written:
            pictures[view] = next(written.decode(video=0)).to_ndarray(format="gray").astype(int)
    black = (pictures["set-size"] < 20).mean()
    assert 0.3 < black < 0.7
    assert np.abs(pictures["set-size"] - pictures["uncertainty"]).mean() > 5


@pytest.mark.parametrize(
    ("chosen", "mode", "said"), [("street-tiny", "vq-dnn", "for vq-dnn, tau 8, motion"), ("", "dnn", "for dnn")]
)
def test_without_thresholds_it_is_one_line(
    model: str, chosen: str, mode: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["video", "street", "--model", chosen or model, "--mode", mode, "--view", "set-size"]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and "steadyseg calibrate" in lines[0] and said in lines[0]
