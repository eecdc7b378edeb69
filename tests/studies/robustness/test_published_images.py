"""The files of CIFAR-C and CIFAR-P: a part of them is read like the whole; anything else is refused in one line."""

from pathlib import Path

import numpy as np
import pytest

from steadyseg.core.errors import InputError
from steadyseg.studies.robustness.measures.published_images import open_corruption, open_perturbation


def pictures(*leading: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (*leading, 32, 32, 3), dtype=np.uint8)


def corruption_folder(folder: Path, count: int = 4) -> np.ndarray:
    stacked = pictures(5 * count)
    np.save(folder / "fog.npy", stacked)
    np.save(folder / "labels.npy", np.tile(np.arange(count), 5))
    return stacked


def test_severities_are_stacked_and_the_file_stays_on_disk(tmp_path: Path) -> None:
    stacked = corruption_folder(tmp_path)
    images, labels = open_corruption(tmp_path, "fog")
    assert images.shape == (5, 4, 32, 32, 3) and isinstance(images, np.memmap) and not images.flags.writeable
    for severity in range(5):
        assert (images[severity] == stacked[4 * severity : 4 * severity + 4]).all()
    assert labels.dtype == np.int64 and labels.tolist() == [0, 1, 2, 3]


def test_labels_may_be_of_any_whole_type(tmp_path: Path) -> None:
    corruption_folder(tmp_path)
    np.save(tmp_path / "labels.npy", np.tile(np.arange(4, dtype=np.uint8), 5))
    assert open_corruption(str(tmp_path), "fog")[1].tolist() == [0, 1, 2, 3]


def test_sequences_come_as_they_are(tmp_path: Path) -> None:
    sequences = pictures(3, 16)
    np.save(tmp_path / "translate.npy", sequences)
    opened = open_perturbation(tmp_path, "translate")
    assert isinstance(opened, np.memmap) and (opened == sequences).all()


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (pictures(7), "7 pictures are not the same number of each of 5"),
        (pictures(5).astype(np.float32), "expected uint8 .*got float32"),
        (pictures(5).transpose(0, 3, 1, 2), r"got uint8 \(5, 3, 32, 32\)"),
        (pictures(5, 1), r"got uint8 \(5, 1, 32, 32, 3\)"),
        (np.zeros((0, 32, 32, 3), np.uint8), "empty|not a whole"),
        (np.array(3, np.uint8), "got uint8"),
        (np.array([{"a": 1}], dtype=object), "not a whole .npy file of numbers"),
    ],
)
def test_other_arrays_are_refused(tmp_path: Path, array: np.ndarray, message: str) -> None:
    corruption_folder(tmp_path)
    np.save(tmp_path / "fog.npy", array, allow_pickle=True)
    with pytest.raises(InputError, match=message) as refused:
        open_corruption(tmp_path, "fog")
    assert "\n" not in str(refused.value) and "fog.npy" in str(refused.value)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.arange(4), "expected 20 whole numbers"),
        (np.zeros(20), "got float64"),
        (np.arange(20), "first n of each severity"),
    ],
)
def test_other_labels_are_refused(tmp_path: Path, labels: np.ndarray, message: str) -> None:
    corruption_folder(tmp_path)
    np.save(tmp_path / "labels.npy", labels)
    with pytest.raises(InputError, match=message):
        open_corruption(tmp_path, "fog")


def test_damaged_and_missing_files_are_refused(tmp_path: Path) -> None:
    corruption_folder(tmp_path)
    whole = (tmp_path / "fog.npy").read_bytes()
    np.savez(tmp_path / "archive.npz", a=np.zeros(3))
    for content in (whole[:-100], whole[:40], whole[:7], b"", b"not an array", (tmp_path / "archive.npz").read_bytes()):
        (tmp_path / "fog.npy").write_bytes(content)
        with pytest.raises(InputError, match=r"fog.npy") as refused:
            open_corruption(tmp_path, "fog")
        assert "\n" not in str(refused.value)
    with pytest.raises(InputError, match="no such file; the folder has fog, labels"):
        open_corruption(tmp_path, "snow")
    with pytest.raises(InputError, match=r"no \.npy file"):
        open_corruption(tmp_path / "nowhere", "snow")
    (tmp_path / "frost.npy").mkdir()
    with pytest.raises(InputError, match="not a whole"):
        open_corruption(tmp_path, "frost")


def test_a_header_of_nonsense_is_refused(tmp_path: Path) -> None:
    """Bytes of the header overwritten at random: an array or an InputError, never another error."""
    corruption_folder(tmp_path, count=1)
    whole = (tmp_path / "fog.npy").read_bytes()
    generator, refusals = np.random.default_rng(1), 0
    for _ in range(200):
        damaged = bytearray(whole)
        for place in generator.integers(0, 128, 3):
            damaged[place] = generator.integers(32, 127) if generator.random() < 0.7 else generator.integers(0, 256)
        (tmp_path / "fog.npy").write_bytes(bytes(damaged))
        try:
            open_corruption(tmp_path, "fog")
        except InputError:
            refusals += 1
    assert refusals > 100


def test_names_are_checked_before_paths(tmp_path: Path) -> None:
    for name in ("../fog", "labels", "fogg"):
        with pytest.raises(InputError, match="unknown corruption"):
            open_corruption(tmp_path, name)
    with pytest.raises(InputError, match="unknown perturbation 'fog'"):
        open_perturbation(tmp_path, "fog")


def test_a_sequence_has_two_frames_or_more(tmp_path: Path) -> None:
    np.save(tmp_path / "scale.npy", pictures(2, 1))
    with pytest.raises(InputError, match="two or more frames, got 1"):
        open_perturbation(tmp_path, "scale")
