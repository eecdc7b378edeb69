"""Files and folders that appear whole or not at all, and what the machine has."""

import math
import os
import subprocess
import sys
from collections import deque
from pathlib import Path

import pytest
from refusals import refusal

from steadyseg.core.errors import InputError
from steadyseg.core.stage_clock import MAX_TIMES, StageClock
from steadyseg.core.system import machine
from steadyseg.core.system.files import (
    cache_file,
    private_folder,
    read_small,
    require_place,
    whole_folder,
    write_atomic,
)


def test_a_file_is_flushed_and_replaced_whole_and_an_interruption_leaves_the_old_one(tmp_path, monkeypatch):
    path, calls, fsync, replace = tmp_path / "a.bin", list[str](), os.fsync, os.replace

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", lambda file: calls.append("fsync") or fsync(file))
    monkeypatch.setattr(os, "replace", lambda *names: calls.append("replace") or replace(*names))
    write_atomic(path, b"old")
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new" and os.listdir(tmp_path) == ["a.bin"]
    assert calls == ["fsync", "replace"] * 2
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(path, b"newer")
    assert path.read_bytes() == b"new" and os.listdir(tmp_path) == ["a.bin"]


@pytest.mark.parametrize("umask", [0o077, 0o022])
def test_a_new_file_has_the_umask_s_mode_and_a_replaced_one_keeps_its_own(umask: int, tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    before = os.umask(umask)
    try:
        write_atomic(path, b"new")
        assert path.stat().st_mode & 0o777 == 0o666 & ~umask
        path.chmod(0o640)
        write_atomic(path, b"newer")
        assert path.stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)


def test_a_folder_for_locks_belongs_to_the_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = private_folder()
    assert folder.parent == tmp_path and folder.stat().st_mode & 0o777 == 0o700 and private_folder() == folder
    folder.chmod(0o770)
    assert "this user alone" in refusal(private_folder)
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir(0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    assert "this user alone" in refusal(private_folder)
    folder.unlink()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "gone"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert private_folder() == folder
    if os.getuid() == 0:  # another user's folder, which only root can make here
        os.chown(folder, 65534, 65534)
        assert "this user alone" in refusal(private_folder)


def test_a_worker_locks_cores_in_no_folder_that_a_neighbour_prepared(tmp_path: Path) -> None:
    """A link there would make the worker create files of the neighbour's choosing."""
    (tmp_path / "victim").mkdir()
    (tmp_path / f"steadyseg-{os.getuid()}").symlink_to(tmp_path / "victim")
    program = "from steadyseg.app.scale.engines.machine import pin_core; pin_core()"
    environment = {**os.environ, "TMPDIR": str(tmp_path), "XDG_RUNTIME_DIR": ""}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode and "this user alone" in done.stderr and not os.listdir(tmp_path / "victim")


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


def test_a_folder_that_is_replaced_is_never_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill may come after any step, and servers read the folder meanwhile."""
    folder, rename = tmp_path / "site", os.rename
    folder.mkdir()
    (folder / "old.txt").write_text("old")

    def killed_after(one: Path, other: Path) -> None:
        rename(one, other)
        raise KeyboardInterrupt

    with whole_folder(folder, replace=True) as partial:
        (partial / "new.txt").write_text("new")
        monkeypatch.setattr(os, "rename", killed_after)
    assert os.listdir(folder) == ["new.txt"] and os.listdir(tmp_path) == ["site"]


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
    code = "import sys; import steadyseg.core.system.machine as m; m.available_cpus(); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_a_user_without_a_home_caches_in_a_private_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STEADYSEG_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as without HOME and an entry in passwd
    assert cache_file("kernels") == tmp_path / f"steadyseg-{os.getuid()}" / "kernels"
    assert cache_file("kernels").parent.stat().st_mode & 0o077 == 0


def test_folders_of_killed_processes_go_and_those_at_work_stay(tmp_path: Path) -> None:
    killed, young, other = (tmp_path / f".{name}.0a1b2c3d.partial" for name in ("results", "results", "else"))
    young = young.with_name(".results.9f8e7d6c.partial")
    for folder in (killed, young, other):
        folder.mkdir()
        (folder / "a.png").write_bytes(b"a")
    for folder in (killed, other):
        os.utime(folder, (1e9, 1e9))
    with whole_folder(tmp_path / "results", replace=True) as ours:
        os.utime(ours, (1e9, 1e9))
        with whole_folder(tmp_path / "results", replace=True):
            assert ours.is_dir(), "another process is at work in it"
    assert sorted(os.listdir(tmp_path)) == sorted([young.name, other.name, "results"])


def test_a_pipe_a_device_and_a_huge_file_are_no_small_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(bytes(11))
    for place, reason in (
        (tmp_path / "pipe", "no regular"),
        (Path("/dev/zero"), "no regular"),
        (tmp_path / "large", "10"),
    ):
        with pytest.raises(OSError, match=reason):
            read_small(place, 10)
    assert read_small(tmp_path / "large", 11) == bytes(11)


CASES = {
    "v2 in a container": ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
    "v2 without a limit": ("0::/\n", {"cpu.max": "max 100000\n"}, math.inf),
    "v2 of systemd, limited above": (
        "0::/user.slice/run.scope\n",
        {"user.slice/cpu.max": "50000 100000\n", "user.slice/run.scope/cpu.max": "max 100000\n"},
        0.5,
    ),
    "v2, a group that is not visible": ("0::/docker/abc\n", {"cpu.max": "100000 100000\n"}, 1.0),
    "v1": (
        "9:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n",
        {"cpu,cpuacct/cpu.cfs_quota_us": "200000\n", "cpu,cpuacct/cpu.cfs_period_us": "100000\n"},
        2.0,
    ),
    "v1 without a limit": (
        "4:cpu,cpuacct:/\n",
        {"cpu,cpuacct/cpu.cfs_quota_us": "-1\n", "cpu,cpuacct/cpu.cfs_period_us": "100000\n"},
        math.inf,
    ),
    "a damaged file": ("0::/\n", {"cpu.max": "lots\n"}, math.inf),
    "no groups": ("", {}, math.inf),
}


@pytest.mark.parametrize("case", CASES)
def test_a_quota_is_read(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process, files, wanted = CASES[case]
    monkeypatch.setattr(machine, "CGROUPS", tmp_path / "groups")
    monkeypatch.setattr(machine, "OWN_GROUPS", tmp_path / "process")
    (tmp_path / "process").write_text(process)
    for name, text in files.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert machine.cpu_quota() == wanted
    assert 1 <= machine.available_cpus() <= max(1, math.ceil(wanted) if wanted < math.inf else 10**6)


def test_percentiles_are_those_of_the_samples_and_memory_is_bounded() -> None:
    clock = StageClock()
    clock.samples["decode"] = deque()  # no sample, no row
    for value in range(MAX_TIMES + 101):
        clock.add("network", float(value))
    assert len(clock.samples["network"]) == MAX_TIMES
    assert clock.summary() == {"network": {"latency_p50_ms": 5100.5, "latency_p95_ms": 9600.05}}
