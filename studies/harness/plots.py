"""Pictures of the pages."""

from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import pyplot as plt

matplotlib.use("Agg")


def save_figure(figure: Any, path: Path) -> None:
    """Writes and closes a figure; without the version of matplotlib, so that the same picture gives the same bytes."""
    figure.savefig(path, dpi=130, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)
