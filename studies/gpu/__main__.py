"""What a GPU measures: a check of some minutes, and the published training in commands of some minutes each.

    python -m steadyseg.studies.gpu list                                 # the rows that a GPU will measure
    python -m steadyseg.studies.gpu prepare --runs RUNS                  # exports the files of the check
    python -m steadyseg.studies.gpu wheels -o WHEELS                     # for a GPU machine without a network
    python -m steadyseg.studies.gpu check --device cuda --minutes 8 --runs RUNS -o OUT
    python -m steadyseg.studies.gpu paper --data data/camvid --runs RUNS -o OUT --minutes 8

The check needs no data. It shows that ONNX Runtime computes on the card, and that exported files agree with PyTorch. It
measures frames/s, steps of a training, and the published network (width 64, dropout 0.5). A row that lacks a package
says so: `frames/s, torch` needs segmentation-models-pytorch, and a file that is not prepared needs the command line's.

`paper` trains preset replica plain, smooth, with MC dropout and both, with two seeds. `paper-half` is for a CPU: half
the size, width 16, dropout 0.2. A command stops after its minutes, between rows or with the state of each training on
disk, and the same command goes on. With --device cpu it is a rehearsal, and `list` prints its rows.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.system.machine import choose_device
from steadyseg.studies.gpu.check import rows_of, run_check
from steadyseg.studies.gpu.files import KINDS, Place
from steadyseg.studies.gpu.trainings import Job, Queue, bring_home, paper_jobs, run_jobs
from steadyseg.studies.gpu.wheels import fetch
from steadyseg.studies.harness.study import exit_code

BLOCKS: dict[str, Callable[[], list[Job]]] = {"paper": paper_jobs, "paper-half": lambda: paper_jobs(180, 16, 0.2)}


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=("list", "prepare", "wheels", "check", *BLOCKS))
    parser.add_argument("--data", type=Path, default=Path("data/camvid"), help="CamVid folder")
    parser.add_argument("--runs", type=Path, default=Path("runs/gpu"), help="where trainings and graph files stay")
    parser.add_argument("--out", "-o", type=Path, default=Path("runs/gpu/out"), help="folder of the records")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--minutes", type=float, default=8.0, help="after these a block stops, to go on later")
    parser.add_argument("--only", nargs="+", default=[], help="trainings of a block, by their names in `list`")
    parser.add_argument("--parallel", type=int, default=4, help="trainings at a time")
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
        print("\n".join(["check:", *rows_of(place)]))
        for name, jobs in BLOCKS.items():
            print("\n".join([f"{name}:", *(job.name for job in jobs())]))
        return
    if given.work == "prepare":
        print("\n".join(str(place.exported(kind).path) for kind in KINDS))
        return
    if given.work == "wheels":
        fetch(given.out, given.python, given.capability)
        return
    failed = list[str]()
    if given.work == "check":
        left, failed = run_check(place, given.out / "check.json", given.minutes)
    else:
        block = chosen(BLOCKS[given.work](), given.only)
        queue = Queue(given.data, given.runs, device, given.minutes, given.parallel)
        left = run_jobs(block, queue)
        bring_home(block, queue, given.out)
    print(f"not done yet: {', '.join(left)}; the same command goes on" if left else "done")
    if failed:
        raise CheckFailed(f"{len(failed)} rows failed: {'; '.join(failed)}")


def chosen(block: list[Job], only: list[str]) -> list[Job]:
    """The block's trainings with these names, or all."""
    jobs = {job.name: job for job in block}
    if unknown := sorted(set(only) - set(jobs)):
        raise InputError(f"--only {unknown[0]}: expected a training of the block, one of {', '.join(jobs)}")
    return [jobs[name] for name in only] or block


if __name__ == "__main__":
    sys.exit(main())
