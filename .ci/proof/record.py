"""Records what the program computes, and compares two records: of code before and after a change that keeps results.

    python .ci/proof/record.py record before.json [--root DIR] [--only PART]
    python .ci/proof/record.py compare before.json after.json

Everything runs through the command line and the package `steadyseg`, so modules may move between the records. A record
goes on with the parts that its file lacks. Record both on one machine: float sums depend on processor and libraries.
"""

import argparse
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hashes import checkpoint, graph, pictures, report

FRAMES = 30
"""Frames of each of the 72 runs. Not 100: starts (12 CPU-s each) and 24 exports alone take over 20 CPU-minutes."""
NETWORKS = {"street-tiny": 180, "camvid-mobile": 360, "camvid-realtime": 180, "camvid-unet-s": 180}
"""Height at which each network works; the two large ones work at half their own height, in a quarter of the time."""
METHODS = "dnn|bnn --samples 5|vq-dnn|vq-dnn --motion off|vq-bnn|vq-bnn --motion off".split("|")
"""Flags of --mode; only the modes that average over time use the motion, which is on by default."""
STREET, SMOOTH = "street-tiny --data WORK/data", "cifar10-resnet18-mc-smooth --data WORK/pictures"
EVALUATE = (
    f"{STREET} --mode dnn --by recording",
    f"{STREET} --mode bnn --samples 5",
    "camvid-mobile --data WORK/data --mode dnn --members camvid-realtime",
    f"{STREET} --protocol stream --mode vq-dnn --backend openvino --precision fp32",
    f"{STREET} --protocol stream --mode vq-bnn --motion off",
    f"{SMOOTH} --mode bnn --samples 5",
)
CALIBRATE = (
    f"{STREET} --mode dnn --risk-class Car --risk 0.2",
    f"{STREET} --mode vq-bnn --familiarity",
    f"{SMOOTH} --samples 5",
)
LOOP = "--epochs 2 --config threads=1 precision=fp32 evaluate_every=1"
CROP = "crop_height=64 crop_width=96 allow_missing_classes=true"
TRAIN = {
    "seg": f"--data WORK/data --classes camvid --channels 4 --size 96 --batch-size 2 {LOOP} {CROP}",
    "classification": f"--data WORK/pictures --channels 8 --dropout 0.3 --smoothing --batch-size 8 {LOOP} size=32",
}
EXPORT = ("street-tiny", "cifar10-resnet18-mc-smooth --mode bnn --samples 5")
"""Graphs without a frame's state; the parts of ONNX Runtime export the stateful graphs."""
LIBRARIES = "torch torchvision numpy opencv-python openvino onnx onnxscript timm tyro rich".split()
THREADS = dict.fromkeys("OMP_NUM_THREADS MKL_NUM_THREADS NUMBA_NUM_THREADS OPENCV_FOR_THREADS_NUM".split(), "1")
PLAIN = {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "PYTHONHASHSEED": "0", "COLUMNS": "100", "NO_COLOR": "1"}
Values = dict[str, Any]


class Checkout:
    """Runs the code of a checkout; its files are in a scratch folder, which commands and results name WORK."""

    def __init__(self, root: Path, scratch: Path) -> None:
        self._root, self.scratch = root, scratch
        entry = tomllib.loads((root / "pyproject.toml").read_text())["project"]["scripts"]["steadyseg"]
        module, function = entry.split(":")
        self._program = f"import sys; from {module} import {function}; sys.exit({function}())"
        found = self.python("-c", "import steadyseg; print(steadyseg.__file__)").strip()
        if not Path(found).resolve().is_relative_to(root):
            raise SystemExit(f"{root}: Python imports {found}, which is not in this checkout")

    def python(self, *words: str) -> str:
        """Runs Python in the checkout and returns its output. Ends the record if it fails."""
        command = [sys.executable, *(word.replace("WORK", str(self.scratch)) for word in words)]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | THREADS | PLAIN
        done = subprocess.run(command, cwd=self._root, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"exit code {done.returncode}: {' '.join(words[2:])}\n{done.stdout}{done.stderr}")
        return done.stdout.replace(str(self.scratch), "WORK")

    def steadyseg(self, words: str) -> list[str]:
        """Runs the function of the installed program and returns the lines that it prints."""
        return self.python("-c", self._program, *words.split()).splitlines()


def machine(run: Checkout) -> Values:
    processors = {line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")}
    return {"processor": sorted(processors), "python": sys.version, **{name: version(name) for name in LIBRARIES}}


def inputs(run: Checkout) -> Values:
    return {name: pictures(run.scratch / name) for name in ("video", "labels", "data", "pictures")}


def helps(run: Checkout, command: str = "") -> Values:
    """Lines of `--help` and `--config list` of a command and of the commands below it."""
    lines = run.steadyseg(f"{command} --help")
    values: Values = {f"steadyseg {command}": lines}
    if any("--config" in line for line in lines):
        values[f"steadyseg {command} --config list"] = run.steadyseg(f"{command} --config list")
    below = re.fullmatch(r"usage: .*\{(.+)\}", lines[0])
    for name in below[1].split(",") if below else ():
        values |= helps(run, f"{command} {name}".strip())
    return values


def wheel(run: Checkout) -> Values:
    """Top-level names of the wheel, and all names without a leading `steadyseg/`: modules may move below it."""
    run.python("-m", "hatchling", "build", "--target", "wheel", "--directory", "WORK")
    names = zipfile.ZipFile(next(run.scratch.glob("*.whl"))).namelist()
    files = sorted(name.removeprefix("steadyseg/") for name in names)
    return {"top": sorted({name.split("/")[0] for name in names}), "files": files}


def trainings(run: Checkout) -> Values:
    """Checkpoints after two epochs of both trainers."""
    made = {kind: run.steadyseg(f"train {kind} --run WORK/{kind} {words}")[-1] for kind, words in TRAIN.items()}
    return {kind: checkpoint(run.scratch / path.removeprefix("WORK/")) for kind, path in made.items()}


def reports(run: Checkout) -> Values:
    values: Values = {}
    for words in EVALUATE:
        printed = run.steadyseg(f"evaluate {words} --report WORK/evaluate.json --overwrite")
        values[f"evaluate {words}"] = {"printed": printed, "report": report(run.scratch / "evaluate.json")}
    for words in CALIBRATE:
        printed = run.steadyseg(f"calibrate {words} -o WORK/calibrated.safetensors --overwrite")
        values[f"calibrate {words}"] = {
            "printed": printed,
            "checkpoint": checkpoint(run.scratch / "calibrated.safetensors"),
        }
    return values


def graphs(run: Checkout) -> Values:
    values: Values = {}
    for words in EXPORT:
        run.steadyseg(f"export {words} -o WORK/network.onnx --overwrite")
        values[words] = graph(run.scratch / "network.onnx")
    return values


def segmented(network: str, backend: str, run: Checkout) -> Values:
    """Masks and reports of `video` by method, and the graphs that ONNX Runtime runs."""
    values: Values = {}
    for method in METHODS:
        model, flags = network, f"--mode {method} --size {NETWORKS[network]}"
        if backend == "onnxruntime":
            run.steadyseg(f"export {network} --stateful {flags} -o WORK/stateful.onnx --overwrite")
            values[f"{method}/graph"] = graph(run.scratch / "stateful.onnx")
            model, flags = "WORK/stateful.onnx", ""
        flags += f" --backend {backend} --precision fp32 --labels WORK/labels --overwrite"
        run.steadyseg(f"video WORK/video --model {model} {flags} --masks WORK/masks --report WORK/video.json")
        values |= {
            f"{method}/masks": pictures(run.scratch / "masks"),
            f"{method}/report": report(run.scratch / "video.json"),
        }
        shutil.rmtree(run.scratch / "masks")
    return values


PARTS: dict[str, Callable[[Checkout], Values]] = {
    **{one.__name__: one for one in (machine, inputs, helps, wheel, trainings, reports, graphs)},
    **{
        f"{backend}/{network}": partial(segmented, network, backend)
        for backend in ("torch", "openvino", "onnxruntime")
        for network in NETWORKS
    },
}


def record(out: Path, root: Path, only: str) -> None:
    """Runs the parts that the file lacks and whose names begin with `only`, and writes the file after each."""
    describe = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40"]
    subject = {"commit": subprocess.check_output(describe, text=True).strip(), "frames": FRAMES}
    whole: Values = json.loads(out.read_text()) if out.exists() else {**subject, "parts": {}}
    if not subject.items() <= whole.items():
        raise SystemExit(
            f"{out}: records {whole['frames']} frames of {whole['commit']}, not {subject}; name another file"
        )
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # OpenVINO and ONNX Runtime take a thread for each core
    with tempfile.TemporaryDirectory() as scratch:
        run = Checkout(root.resolve(), Path(scratch))
        run.python("-c", (Path(__file__).parent / "inputs.py").read_text(), "WORK", str(FRAMES))
        for name in [name for name in PARTS if name.startswith(only) and name not in whole["parts"]]:
            cpu_s, wall_s = sum(os.times()[2:4]), time.monotonic()
            values = PARTS[name](run)
            took = {"cpu_s": round(sum(os.times()[2:4]) - cpu_s), "wall_s": round(time.monotonic() - wall_s)}
            whole["parts"][name] = {**took, "values": values}
            out.with_suffix(".part").write_text(json.dumps(whole, indent=1))
            out.with_suffix(".part").replace(out)
            print(name, took, flush=True)


def differences(a: Any, b: Any, key: str) -> Iterator[str]:
    """Yields a line for every value that differs; for lists, the lines of their diff."""
    if isinstance(a, dict) and isinstance(b, dict):
        for name in dict.fromkeys((*a, *b)):
            yield from differences(a.get(name, "absent"), b.get(name, "absent"), f"{key}/{name}")
    elif isinstance(a, list) and isinstance(b, list):
        for line in [*difflib.unified_diff([*map(str, a)], [*map(str, b)], lineterm="", n=0)][2:]:
            if not line.startswith("@@"):
                yield f"{key}: {line}"
    elif a != b:
        yield f"{key}: {json.dumps(a)[:80]} -> {json.dumps(b)[:80]}"


def compare(first: Path, second: Path) -> int:
    """Prints what differs, part by part; returns 1 if anything does."""
    a, b = (json.loads(path.read_text())["parts"] for path in (first, second))
    found = 0
    for name in {**a, **b}:
        absent = {"values": "absent"}
        lines = list(differences(a.get(name, absent)["values"], b.get(name, absent)["values"], name))
        print(f"{name}: {f'{len(lines)} differences' if lines else 'same'}", *lines, sep="\n  ")
        found += len(lines)
    return int(found > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("record", "compare"))
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="record: one; compare: two")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[2], help="record: checkout to run")
    parser.add_argument("--only", default="", metavar="PART", help=f"record: names begin so: {', '.join(PARTS)}")
    job = parser.parse_args()
    if len(job.files) != 1 + (job.command == "compare"):
        parser.error("record takes one file, compare two")
    if job.command == "compare":
        return compare(job.files[0], job.files[1])
    record(job.files[0], job.root, job.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
