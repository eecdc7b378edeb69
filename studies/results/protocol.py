"""Measures the included networks by the protocol of docs/records/results/protocol.md, with the command that it names.

    python -m steadyseg.studies.results.protocol --data data/camvid [--fresh]

Networks that were measured are kept while data and weights are the same. Half a minute of one core each.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from torch import nn

from steadyseg.app.commands import load
from steadyseg.app.evaluation.recordings import KEYS, percent_with_interval
from steadyseg.runtime.open_model import open_checkpoint
from steadyseg.studies.harness.networks import pass_gflops, rests_on
from steadyseg.studies.harness.study import PAGES, Cache, data_digest, origin
from steadyseg.studies.harness.tables import read_record, table
from steadyseg.studies.results.front import SHOWN, run_command

RECORD = PAGES / "results" / "protocol.json"
COMMAND = "steadyseg evaluate NAME --data CamVid --split test --calibrated off --by recording"


def run(data: Path, fresh: bool) -> None:
    cache, frames = Cache(RECORD), data_digest(data)
    for name in SHOWN:
        model = open_checkpoint(name)
        digest = rests_on(name, frames)
        if fresh or cache.get(name, digest) is None:
            size, params, gflops = cost_of(model.network(), model.meta.height, model.meta.width)
            cost = {"size": size, "params": params, "gflops": gflops}
            cache.put(name, digest, {"recordings": evaluated(COMMAND, name, data)["recordings"], **cost}, origin())


def evaluated(command: str, name: str, data: Path) -> dict[str, Any]:
    """Runs a `steadyseg evaluate NAME --data CamVid ...` and returns its report."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = command.replace("NAME", name).split()[1:]
        words[words.index("CamVid")] = str(data)
        if load("steadyseg.app.cli:main")([*words, "--report", str(report)]):
            raise SystemExit(2)
        return dict(json.loads(report.read_text()))


def cost_of(network: nn.Module, height: int, width: int) -> tuple[str, str, str]:
    """(size, millions of parameters, GFLOPs)."""
    parameters = sum(parameter.numel() for parameter in network.parameters())
    return f"{width}x{height}", f"{parameters / 1e6:.2f} M", f"{pass_gflops(network, (height, width)):.2f}"


def protocol_table() -> str:
    """A line for each network and recording."""
    lines = []
    for name, found in read_record("results", "protocol.json").items():
        row = found["rows"]
        for recording, figures in row["recordings"].items():
            cells = [percent_with_interval(*figures[key]) for key in KEYS]
            lines.append([f"`{name}`", recording, *cells, row["params"], row["gflops"], row["size"]])
    return table(["network", "recording", "accuracy, %", "mIoU, %", "ECE, %", "parameters", "GFLOP", "input"], lines)


if __name__ == "__main__":
    sys.exit(run_command("protocol", __doc__, run))
