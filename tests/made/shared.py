"""What one process of a test run makes and all its processes read."""

import os
from collections.abc import Callable
from pathlib import Path

from made.waiting import wait_for

from steadyseg.core.system.files import lock

FOLDER = "STEADYSEG_TESTS_SHARED"
"""The variable that names the folder; conftest.py makes it once for all processes of a run."""


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """The file or folder of this name. The first process to ask makes it, the others wait."""
    path = Path(os.environ[FOLDER]) / name
    with path.with_name(f"{name}.lock").open("w") as file:
        wait_for(lambda: lock(file))
        if not path.exists():
            partial = path.with_name(f"partial-{name}")
            make(partial)
            partial.rename(path)
    return path
