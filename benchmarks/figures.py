"""Figures of the documents that the studies write, the same bytes for the same rows."""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt


def saved(figure: Any, docs: Path, name: str, title: str) -> dict[str, str]:
    """Writes and closes a figure; {title: file name}."""
    figure.savefig(docs / name, dpi=130, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)
    return {title: name}
