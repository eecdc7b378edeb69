"""What a measured row is stored with, so that a reader knows which code made it."""

import subprocess
from pathlib import Path

import torch


def origin() -> dict[str, str]:
    """The short hash of the commit at hand ("" outside a git checkout), and torch's version."""
    try:
        asked = ["git", "rev-parse", "--short", "HEAD"]
        commit = subprocess.run(asked, capture_output=True, text=True, cwd=Path(__file__).parent).stdout.strip()
    except FileNotFoundError:
        commit = ""
    return {"commit": commit, "torch": torch.__version__}
