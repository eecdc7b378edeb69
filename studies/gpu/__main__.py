"""What a GPU measures in a check of some minutes; `python -m steadyseg.studies.papers` has the trainings.

    python -m steadyseg.studies.gpu list                                 # the rows that a GPU will measure
    python -m steadyseg.studies.gpu prepare --runs RUNS                  # exports the files of the check
    python -m steadyseg.studies.gpu wheels -o WHEELS                     # for a GPU machine without a network
    python -m steadyseg.studies.gpu check --device cuda --minutes 8 --runs RUNS -o OUT

The check needs no data. It shows that ONNX Runtime computes on the card, and that exported files agree with PyTorch. It
measures frames/s, steps of a training, and the published network (width 64, dropout 0.5). A row that lacks a package
says so: `frames/s, torch` needs segmentation-models-pytorch, and a file that is not prepared needs the command line's.

The check stops after its minutes, between rows, and the same command goes on. With --device cpu it is a rehearsal, and
`list` prints its rows.
"""

import argparse
import sys
from pathlib import Path

from steadyseg.core.errors import CheckFailed
from steadyseg.core.system.machine import choose_device
from steadyseg.studies.gpu.check import rows_of, run_check
from steadyseg.studies.gpu.files import KINDS, Place
from steadyseg.studies.gpu.wheels import fetch
from steadyseg.studies.harness.study import exit_code


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=("list", "prepare", "wheels", "check"))
    parser.add_argument("--runs", type=Path, default=Path("runs/gpu"), help="where graph files stay")
    parser.add_argument("--out", "-o", type=Path, default=Path("runs/gpu/out"), help="folder of the records")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--minutes", type=float, default=8.0, help="after these it stops, to go on later")
    parser.add_argument("--model", default=Place.model, help="check: a pretrained network")
    parser.add_argument("--seconds", type=float, default=Place.seconds, help="check: of each timing")
    parser.add_argument("--size", type=int, default=Place.size, help="check: height of the trained networks' input")
    parser.add_argument("--limit", type=int, default=Place.limit_s, help="check: seconds after which a row has failed")
    parser.add_argument("--python", default="3.12", help="wheels: Python there")
    parser.add_argument("--capability", default="9.0", help="wheels: compute capability of the card there")
    return exit_code("gpu", lambda: run(parser.parse_args(words)))


def run(given: argparse.Namespace) -> None:
    device = choose_device("cpu" if given.work in ("list", "prepare", "wheels") else given.device).type
    if given.work == "list" and given.device != "cpu":
        device = "cuda"
    place = Place(device, given.runs, given.model, given.seconds, given.size, given.limit)
    given.runs.mkdir(parents=True, exist_ok=True)
    if given.work == "list":
        print("\n".join(rows_of(place)))
        return
    if given.work == "prepare":
        print("\n".join(str(place.exported(kind).path) for kind in KINDS))
        return
    if given.work == "wheels":
        fetch(given.out, given.python, given.capability)
        return
    left, failed = run_check(place, given.out / "check.json", given.minutes)
    print(f"not done yet: {', '.join(left)}; the same command goes on" if left else "done")
    if failed:
        raise CheckFailed(f"{len(failed)} rows failed: {'; '.join(failed)}")


if __name__ == "__main__":
    sys.exit(main())
