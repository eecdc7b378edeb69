"""The picture of docs/records/robustness: the included networks by severity, from their reports.

python -m steadyseg.studies.robustness.by_severity
"""

import json

import numpy as np

from steadyseg.core.corruptions.corruptions import BENCHMARK_CORRUPTIONS
from steadyseg.studies.harness.panels import legend_below, new_figure, write_figure
from steadyseg.studies.harness.study import PAGES

NETWORKS = ("road-mobile", "road-realtime", "road-quality", "camvid-unet-s")
METRICS = {"accuracy": "accuracy, %", "ece": "ECE, %", "mean_confidence": "mean confidence, %"}


def main() -> None:
    """Means over the 15 corruptions of the benchmark; severity 0 is the clean picture."""
    figure, axes = new_figure(len(METRICS), 3.6, 3.2)
    for name in NETWORKS:
        report = json.loads((PAGES / "robustness" / name / "report.json").read_text())["studies"]["corruptions"]
        rows = [*report["clean"], *(row for row in report["rows"] if row["type"] in BENCHMARK_CORRUPTIONS)]
        rows = [row for row in rows if row["mode"] == "dnn"]
        severities = np.array([row["severity"] for row in rows])
        for axis, key in zip(axes, METRICS, strict=True):
            values = 100 * np.array([row[key] for row in rows])
            means = [values[severities == one].mean() for one in np.unique(severities)]
            axis.plot(np.unique(severities), means, marker="o", label=name)
    for axis, title in zip(axes, METRICS.values(), strict=True):
        axis.set(title=title, xlabel="severity of the corruption")
    legend_below(figure, axes)
    write_figure(PAGES / "robustness" / "corruptions.png", figure, dpi=110)


if __name__ == "__main__":
    main()
