"""Converted networks on disk: found by all that they depend on, made again when damaged, and never needed."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from steadyseg.runtime import converted
from steadyseg.runtime.converted import Converted, file_key, kept, was_kept

KEY = "0123456789abcdef-key"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STEADYSEG_CACHE", str(tmp_path))
    return tmp_path / converted.FOLDER


def network(factor: float = 2.0) -> Converted:
    """y = factor * x, and a second model with one dropout mask."""
    import openvino
    from openvino import opset13 as ops

    x, mask = ops.parameter([4], np.float32, "x"), ops.parameter([4], np.float32, "mask")
    plain = openvino.Model([ops.multiply(x, ops.constant(np.float32(factor)))], [x], "plain")
    return Converted([plain, openvino.Model([ops.multiply(x, mask)], [x, mask], "drawn")], [0.5], [(4,)])


def outputs(found: Converted) -> np.ndarray:
    import openvino

    request = openvino.Core().compile_model(found.models[0], "CPU", {"INFERENCE_NUM_THREADS": 1}).create_infer_request()
    return np.asarray(request.infer([np.arange(4, dtype=np.float32)])[0])


def counted(made: list[int]) -> Callable[[], Converted]:
    def convert() -> Converted:
        made.append(1)
        return network()

    return convert


def test_a_network_is_converted_once(cache: Path) -> None:
    made: list[int] = []
    for _ in range(2):
        found = kept(KEY, counted(made))
        assert outputs(found).tolist() == [0, 2, 4, 6]
        assert found.rates == [0.5] and found.mask_shapes == [(4,)]
    assert len(made) == 1 and [path.name for path in cache.iterdir()] == [KEY]
    assert was_kept(KEY) and not was_kept("f" * 64)
    assert cache.stat().st_mode & 0o077 == 0


def test_without_a_key_nothing_is_kept(cache: Path) -> None:
    assert outputs(kept(None, network)).tolist() == [0, 2, 4, 6] and not cache.exists()


def test_another_checkpoint_network_or_code_has_another_file(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [file_key("a" * 64, "fp32 360x480"), file_key("b" * 64, "fp32 360x480"), file_key("a" * 64, "int8 360x480")]
    monkeypatch.setattr(converted, "code_digest", lambda: b"changed")
    assert len({*keys, file_key("a" * 64, "fp32 360x480")}) == 4


def test_a_damaged_file_is_made_again(cache: Path) -> None:
    made: list[int] = []
    kept(KEY, counted(made))
    whole = (cache / KEY).read_bytes()
    for damaged in (b"", whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1])):
        (cache / KEY).write_bytes(damaged)
        assert outputs(kept(KEY, counted(made))).tolist() == [0, 2, 4, 6]
        assert outputs(converted.unpack((cache / KEY).read_bytes())).tolist() == [0, 2, 4, 6]
    assert len(made) == 4


def test_a_cache_that_cannot_be_written_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    monkeypatch.setenv("STEADYSEG_CACHE", str(blocked))
    converted.tell_once.cache_clear()
    for _ in range(2):
        assert outputs(kept(KEY, network)).tolist() == [0, 2, 4, 6]
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and str(blocked) in said and "Not a directory" in said


@pytest.mark.slow
def test_processes_that_start_together_all_get_the_network(cache: Path) -> None:
    code = "from test_converted import KEY, kept, network, outputs\nprint(outputs(kept(KEY, network)).tolist())"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    runs = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(3)
    ]
    assert [run.communicate()[0].strip() for run in runs] == ["[0.0, 2.0, 4.0, 6.0]"] * 3
    assert [path.name for path in cache.iterdir()] == [KEY]


def test_the_least_recently_used_files_make_room(cache: Path) -> None:
    cache.mkdir()
    for number in range(converted.MAX_KEPT + 2):
        (cache / f"{number}").write_bytes(b"")
        os.utime(cache / f"{number}", (number, number))
    converted.drop_old(cache)
    assert {path.name for path in cache.iterdir()} == {str(number) for number in range(2, converted.MAX_KEPT + 2)}
