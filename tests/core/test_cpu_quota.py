"""The cores of a container's quota, read from recorded files of both versions of control groups."""

import math
from pathlib import Path

import pytest

from steadyseg.core.system import machine

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
