"""Converted networks on disk: found by all that they depend on, made again when damaged, and never needed."""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from steadyseg.core.errors import InputError
from steadyseg.runtime import converted
from steadyseg.runtime.converted import Converted, file_key, kept, pack, require_shapes, was_kept

KEY = f"0123456789abcdef-{'a' * 64}"


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
        assert outputs(converted.unpack((cache / KEY).read_bytes(), KEY)).tolist() == [0, 2, 4, 6]
    assert len(made) == 4


def odd_entry(path: Path, kind: str) -> None:
    """Puts something else in the place of an entry."""
    whole = path.read_bytes()
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        (path.parent / "other").write_bytes(whole)
        path.symlink_to(path.parent / "other")
    elif kind == "another name's":
        path.write_bytes(pack(network(5.0), "b" * 16))
    else:
        about = {"rates": [], "shapes": [], "lengths": [3, 0]} if kind == "no graph" else {"lengths": "x"}
        text = b"[" * 50_000 if kind == "deep" else json.dumps(about).encode()
        body = len(text).to_bytes(8, "big") + text + b"<a>"
        path.write_bytes(hashlib.sha256(KEY.encode() + body).digest() + body)


@pytest.mark.parametrize("kind", ["pipe", "link", "another name's", "no graph", "odd record", "deep"])
def test_an_odd_entry_is_made_again(cache: Path, kind: str) -> None:
    kept(KEY, network)
    odd_entry(cache / KEY, kind)
    made: list[int] = []
    for _ in range(2):
        assert outputs(kept(KEY, counted(made))).tolist() == [0, 2, 4, 6]
    assert len(made) == 1 and not (cache / KEY).is_symlink()


def test_a_network_of_other_inputs_or_outputs_is_made_again(cache: Path) -> None:
    def check(found: Converted) -> None:
        require_shapes(found, 360, 480, 11)

    made: list[int] = []
    kept(KEY, counted(made), check)
    kept(KEY, counted(made), check)
    assert len(made) == 2
    with pytest.raises(InputError, match="the network is another one"):
        check(network())


def test_nothing_is_read_or_written_in_a_folder_that_others_may_enter(cache, capsys):
    kept(KEY, lambda: network(5.0))
    for others in (0o755, 0o770):
        cache.chmod(others)
        before = (cache / KEY).read_bytes()
        converted.tell_once.cache_clear()
        assert outputs(kept(KEY, network)).tolist() == [0, 2, 4, 6] and (cache / KEY).read_bytes() == before
        assert "that this user alone may enter" in capsys.readouterr().err
    cache.chmod(0o700)
    cache.rename(cache.with_name("moved"))
    cache.symlink_to(cache.with_name("moved"))
    assert outputs(kept(KEY, network)).tolist() == [0, 2, 4, 6] and (cache / KEY).read_bytes() == before


def test_a_cache_of_a_too_long_name_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEADYSEG_CACHE", "/tmp/" + "x" * 300)
    assert not was_kept(KEY) and not converted.is_kept(KEY, "fp32 360x480")
    assert outputs(kept(KEY, network)).tolist() == [0, 2, 4, 6]


def test_a_cache_that_cannot_be_written_is_told_once(tmp_path, monkeypatch, capsys):
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
    names = [file_key("a" * 64, number) for number in range(converted.MAX_KEPT + 2)]
    foreign = ["thesis.txt", f"{names[0]}.bak", "a" * 16, ".hidden"]
    for age, name in enumerate([*foreign, *names]):
        (cache / name).write_bytes(b"")
        os.utime(cache / name, (age, age))
    link = cache / file_key("b" * 64)
    link.symlink_to(cache / foreign[0])
    os.utime(link, (0, 0), follow_symlinks=False)
    left_by_kill = f".{names[0]}.0123abcd.partial"
    (cache / left_by_kill).write_bytes(b"")
    os.utime(cache / left_by_kill, (0, 0))
    converted.drop_old(cache)
    assert {path.name for path in cache.iterdir()} == {*foreign, *names[2:], link.name}


def test_a_key_stands_for_the_code_that_a_conversion_imports() -> None:
    """What reads and writes files, and what computes on frames, changes no converted network."""
    root, waiting, seen = Path(converted.__file__).parents[1], [Path("runtime/conversion.py")], set[Path]()
    while waiting:
        if (path := waiting.pop()) in seen:
            continue
        seen.add(path)
        words = re.findall(r"^from steadyseg\.([\w.]+) import", (root / path).read_text(), re.M)
        waiting += [Path(*word.split(".")).with_suffix(".py") for word in words]
    known = {path.relative_to(root) for pattern in converted.SOURCES for path in root.glob(pattern)}
    assert {str(path.parent) for path in seen - known} <= {"core/system", "export/file"}
