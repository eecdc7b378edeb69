"""Files and folders that appear whole or not at all, and the check of a place before the work."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import InputError
from core.system.files import require_place, whole_file, whole_folder, write_atomic


def test_a_file_is_replaced_whole_and_an_error_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    write_atomic(path, b"old")
    with pytest.raises(RuntimeError), whole_file(path) as file:
        file.write(b"half of the ne")
        raise RuntimeError
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["a.bin"]
    with whole_file(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new" and os.listdir(tmp_path) == ["a.bin"]
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(("replace", "kept"), [(True, "new"), (False, "old")])
@pytest.mark.parametrize("files", [1, 30])
def test_a_folder_is_replaced_or_kept(replace: bool, kept: str, files: int, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    for text in ("old", "new"):
        with whole_folder(folder, replace=replace) as partial:
            for number in range(files):
                (partial / f"{number}.txt").write_text(text)
    assert [(folder / f"{number}.txt").read_text() for number in range(files)] == [kept] * files
    assert os.listdir(tmp_path) == ["results"]


def test_an_error_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), whole_folder(tmp_path / "results", replace=False) as partial:
        (partial / "a.txt").write_text("a")
        raise RuntimeError
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "is a folder; give the name of a report in it"),
        ("r.txt", "a report is a .json file"),
        ("gone/r.json", "there is no folder"),
        ("there.json", "--overwrite"),
    ],
)
def test_a_place_that_cannot_take_the_file_is_refused(name: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "there.json").write_text("{}")
    with pytest.raises(InputError, match=words):
        require_place(tmp_path / name, "a report", (".json",), overwrite=False)
    require_place(tmp_path / "there.json", "a report", (".json",), overwrite=True)


def test_the_machine_is_asked_without_torch() -> None:
    code = "import sys; import core.system.machine as m; m.available_cpus(); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
