"""`steadyseg bench` in a process of its own, on a machine that does nothing else."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from steadyseg.core.errors import InputError
from steadyseg.core.system.machine import available_cpus
from steadyseg.studies.harness.study import PAGES, PROJECT

PAGE = PAGES / "performance"
CALM_S = 180
"""Longest wait for a quiet machine, in seconds; `steadyseg bench` itself says when others were busy."""


def bench(model: str, *flags: str, environment: dict[str, str] | None = None) -> dict[str, Any]:
    """Runs `steadyseg bench` and returns its report. Raises InputError where it failed or ran beside other work."""
    wait_for_quiet()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.json"
        command = [sys.executable, "-m", "steadyseg", "bench", model, "--report", str(file), *flags]
        if subprocess.run(command, cwd=PROJECT, env=os.environ | (environment or {})).returncode:
            raise InputError(f"{model}: `steadyseg bench` failed")
        record = dict(json.loads(file.read_text()))
    if any("other processes were busy" in note for note in record["notes"]):
        raise InputError(f"{model}: {record['notes'][-1]}; run it again when the machine is quiet")
    return record


def wait_for_quiet() -> None:
    """The load is a mean over the last minute, and the run before it was this program's own."""
    for _ in range(CALM_S):
        if os.getloadavg()[0] < 0.4 * available_cpus():
            return
        time.sleep(1)
