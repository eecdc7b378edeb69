"""Pictures of the pages."""

import io
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import pyplot as plt

from steadyseg.app.report_file import small_png

matplotlib.use("Agg")


def save_figure(figure: Any, path: Path) -> None:
    """Writes and closes a figure; without the version of matplotlib, so that the same picture gives the same bytes."""
    picture = io.BytesIO()
    figure.savefig(picture, dpi=130, bbox_inches="tight", metadata={"Software": None})
    path.write_bytes(small_png(picture.getvalue()))
    plt.close(figure)
