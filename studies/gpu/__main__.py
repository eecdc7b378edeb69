"""Measurements and trainings that need a GPU, in commands of a few minutes each, for a machine without a network.

    python -m steadyseg.studies.gpu list                             # the rows that a GPU will measure
    python -m steadyseg.studies.gpu WORK --data ../camvid --runs ../runs --out OUT --minutes 8

WORK, to be repeated until it is done:
- executors: parity and throughput of torch, CUDA graphs and ONNX Runtime on CUDA. It covers every number format and
  provider option, the proofs of exported files, and many streams in one call.
- formats: a short training in fp32, bf16 and fp16
- paper: preset replica at width 16, plain, smooth, MC dropout and both, two seeds; paper-half: at half the size
- recipes: the networks that ship, at full length

A command stops after its minutes, between rows or with the state of each training on disk; the same command goes on.
OUT gets what goes home. With --device cpu it is a rehearsal, and `list` prints the rows of that.
"""

import argparse
import sys
from pathlib import Path

from steadyseg.core.errors import InputError
from steadyseg.core.system.machine import choose_device
from steadyseg.studies.gpu.executors import measure_executors, row_names
from steadyseg.studies.gpu.jobs import format_jobs, paper_jobs, recipe_jobs
from steadyseg.studies.gpu.trainings import Job, Queue, bring_home, run_jobs
from steadyseg.studies.harness.study import Cache, exit_code

MODELS = ("camvid-unet-s", "camvid-realtime", "camvid-mobile")


BLOCKS = {"formats": format_jobs, "paper": paper_jobs, "paper-half": lambda: paper_jobs(180), "recipes": recipe_jobs}


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=("list", "executors", *BLOCKS))
    parser.add_argument("--data", type=Path, default=Path("data/camvid"), help="CamVid folder")
    parser.add_argument("--runs", type=Path, default=Path("runs/gpu"), help="where trainings and graph files stay")
    parser.add_argument("--out", type=Path, default=Path("runs/gpu/out"), help="what goes home")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--minutes", type=float, default=8.0, help="after these a block stops, to go on later")
    parser.add_argument("--only", nargs="+", default=[], help="trainings of a block, by their names in `list`")
    parser.add_argument("--parallel", type=int, default=4, help="trainings at a time")
    parser.add_argument("--models", nargs="+", default=MODELS, help="executors: pretrained networks")
    parser.add_argument("--frames", type=int, default=32, help="executors: of the val stream")
    parser.add_argument("--seconds", type=float, default=2.0, help="executors: for each row")
    return exit_code("gpu", lambda: run(parser.parse_args(words)))


def run(given: argparse.Namespace) -> None:
    if given.work == "list":
        rows = [row for model in given.models for row in row_names(model, "cpu" if given.device == "cpu" else "cuda")]
        print("\n".join(["executors:", *rows]))
        for name, jobs in BLOCKS.items():
            print("\n".join([f"{name}:", *(row for job in jobs() for row in rows_of(job))]))
        return
    device = choose_device(given.device).type
    given.out.mkdir(parents=True, exist_ok=True)
    if given.work == "executors":
        cache = Cache(given.out / "executors.json")
        left = measure_executors(
            given.models, given.data, device, given.frames, given.seconds, given.runs, cache, given.minutes
        )
    else:
        block = chosen(BLOCKS[given.work](), given.only)
        queue = Queue(given.data, given.runs, device, given.minutes, given.parallel)
        left = run_jobs(block, queue)
        bring_home(block, queue, given.out, checkpoints=given.work == "recipes")
    print(f"not done yet: {', '.join(left)}; the same command goes on" if left else "done")


def chosen(block: list[Job], only: list[str]) -> list[Job]:
    """The block's trainings with these names, or all."""
    jobs = {job.name: job for job in block}
    if unknown := sorted(set(only) - set(jobs)):
        raise InputError(f"--only {unknown[0]}: expected a training of the block, one of {', '.join(jobs)}")
    return [jobs[name] for name in only] or block


def rows_of(job: Job) -> list[str]:
    """The training and each measurement of it."""
    return [job.name, *(f"{job.name}: evaluate {' '.join(flags)}" for flags in job.evaluations)]


if __name__ == "__main__":
    sys.exit(main())
