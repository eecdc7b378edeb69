"""The check of a GPU, run on the CPU at tiny size, row by row."""

import json
import os
import signal
import struct
import time
from pathlib import Path
from typing import Any

import pytest
from made.waiting import PATIENCE_S

from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.export.file.sessions import cpu_session
from steadyseg.street.drive import Street
from steadyseg.studies.gpu import files
from steadyseg.studies.gpu.__main__ import main
from steadyseg.studies.gpu.check import rows_of, run_check
from steadyseg.studies.gpu.files import Place
from steadyseg.studies.gpu.wheels import BEGIN, thin


def made_rows(place: Place) -> dict[str, Any]:
    """Rows of every end, until there is a file `mended`."""
    ends = {
        "good": lambda: {"value": 1.5},
        "wrong": lambda: {"value": float((place.runs / "mended").read_text())},
        "refused": lambda: {"value": Street(seed=-1).seed},
        "killed": lambda: os.kill(os.getpid(), 9),
        "hangs": lambda: signal.alarm(1) and time.sleep(600),  # its limit, where it has one, ends at once
        "last": lambda: {"value": 2},
    }
    return dict.fromkeys(ends, lambda: {"value": 3}) if (place.runs / "mended").exists() else ends


@pytest.mark.slow
def test_no_end_of_a_row_stops_the_rows_after_it(tmp_path: Path) -> None:
    """The same command measures again what failed, and nothing else."""
    record, place = tmp_path / "check.json", Place("cpu", tmp_path, limit_s=int(PATIENCE_S))
    assert run_check(place, record, 60, made_rows) == ([], ["wrong", "refused", "killed", "hangs"])
    first = {name: row["rows"] for name, row in json.loads(record.read_text()).items()}
    assert first["good"] == {"value": 1.5} and first["last"] == {"value": 2}
    assert first["wrong"]["failed"].startswith("FileNotFoundError: ")
    assert first["refused"]["failed"] == "a street's seed must be 0 or more, got -1"
    assert first["killed"]["failed"] == "its process ended with code -9"
    assert first["hangs"]["failed"] == f"took more than {place.limit_s} s"
    (tmp_path / "mended").touch()
    assert run_check(place, record, 60, made_rows) == ([], [])
    second = {name: row["rows"]["value"] for name, row in json.loads(record.read_text()).items()}
    assert second == {"good": 1.5, "wrong": 3, "refused": 3, "killed": 3, "hangs": 3, "last": 2}


@pytest.mark.long
def test_the_rehearsal_measures_the_rows_of_the_list(tmp_path, capfd, monkeypatch):
    """A file that no GPU computes is a failure, be it that the provider is absent or that it computes nothing."""
    flags = ["--device", "cpu", "--runs", str(tmp_path / "runs"), "--model", "street-tiny", "--size", "64"]
    assert main(["list", *flags]) == 0
    listed = capfd.readouterr().out.splitlines()
    check = ["check", *flags, "-o", str(tmp_path), "--seconds", "0.01", "--limit", "3000", "--minutes"]
    assert main([*check, "0"]) == 0
    assert capfd.readouterr().out == f"not done yet: {', '.join(listed)}; the same command goes on\n"
    assert main([*check, "600"]) == 0 and capfd.readouterr().out.splitlines()[-1] == "done"
    record = json.loads((tmp_path / "check.json").read_text())
    assert set(record) == set(listed) < set(rows_of(Place("cuda", tmp_path)))
    rows = {name: row["rows"] for name, row in record.items()}
    assert rows["provider"]["elsewhere"] == {} and rows["frames/s, torch fp32"]["labels_equal"] > 0.99
    assert rows["training step, fp32"]["first_loss"] == pytest.approx(rows["training step, fp32"]["loss_on_cpu"])

    place = Place("cuda", tmp_path / "runs", "street-tiny", 0.01)
    for name in ("provider", "parity, plain file", "parity, stateful file", "frames/s, stateful file of fp16"):
        with pytest.raises(InputError, match="cannot use CUDAExecutionProvider"):
            rows_of(place)[name]()
    monkeypatch.setattr(files, "open_session", lambda data, *_: (cpu_session(data), "cuda"))
    with pytest.raises(CheckFailed, match="CUDAExecutionProvider was asked for, and others compute"):
        rows_of(place)["provider"]()


def test_a_library_keeps_the_code_of_one_card() -> None:
    """Fat binaries stay where they are; one that lacks the card's code stays whole."""

    def fat(*entries: tuple[int, bytes]) -> bytes:
        packed = b"".join(struct.pack("<HHIQ12xI", 2, 257, 32, len(code), card) + code for card, code in entries)
        return BEGIN + struct.pack("<Q", len(packed)) + packed

    kept, other = fat((90, b"ninety")), fat((120, b"other"))
    whole = b"text" + fat((75, b"old"), (90, b"ninety"), (120, b"new")) + b"data" + other + b"end"
    thinned = thin(whole, 90)
    assert len(thinned) == len(whole) and thinned.endswith(b"data" + other + b"end")
    assert thinned.removeprefix(b"text").startswith(kept) and not set(thinned[4 + len(kept) : whole.index(b"data")]) - {
        0
    }
