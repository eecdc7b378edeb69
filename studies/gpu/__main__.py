"""Measurements and trainings that need a GPU, in commands of a few minutes each, for a machine without a network.

    python -m studies.gpu list                             # the rows that a GPU will measure
    python -m studies.gpu executors --data ../camvid --out OUT
    python -m studies.gpu paper --data ../camvid --runs ../runs --out OUT --minutes 8      # again until it says done
    python -m studies.gpu recipes --data ../camvid --runs ../runs --out OUT --minutes 8

executors: parity and throughput of torch, CUDA graphs and ONNX Runtime on CUDA in every number format, the proofs of
exported files, and many streams in one call. With --device cpu it is a rehearsal.
paper: `unet-paper`, width 64, 130 epochs, plain, smooth, MC dropout and both. recipes: the networks that ship, at full
length. OUT gets what goes home.
"""

import argparse
import json
import sys
from pathlib import Path

from core.system.machine import choose_device
from studies.gpu.executors import measure_executors, row_names
from studies.gpu.jobs import paper_jobs, recipe_jobs
from studies.gpu.trainings import Block, run_block
from studies.harness.bundle import round_figures
from studies.harness.study import exit_code, origin

MODELS = ("camvid-unet-s", "camvid-realtime", "camvid-mobile")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=("list", "executors", "paper", "recipes"))
    parser.add_argument("--data", type=Path, default=Path("../shared/data/camvid"), help="CamVid folder")
    parser.add_argument("--runs", type=Path, default=Path("runs/gpu"), help="where trainings and graph files stay")
    parser.add_argument("--out", type=Path, default=Path("runs/gpu/out"), help="what goes home")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--minutes", type=float, default=8.0, help="after these a block stops, to go on later")
    parser.add_argument("--parallel", type=int, default=4, help="trainings at a time")
    parser.add_argument("--frames", type=int, default=32, help="executors: of the val stream")
    parser.add_argument("--seconds", type=float, default=2.0, help="executors: for each row")
    return exit_code("gpu", lambda: run(parser.parse_args()))


def run(given: argparse.Namespace) -> None:
    if given.work == "list":
        print("\n".join(f"{model}: {name}" for model in MODELS for name in row_names("cuda")))
        return
    device = choose_device(given.device).type
    given.out.mkdir(parents=True, exist_ok=True)
    if given.work == "executors":
        rows = measure_executors(MODELS, given.data, device, given.frames, given.seconds, given.runs)
        record = {"device": name_of(device), **origin(), "rows": round_figures(rows)}
        (given.out / "executors.json").write_text(json.dumps(record, indent=1) + "\n")
        print(given.out / "executors.json")
        return
    jobs = paper_jobs() if given.work == "paper" else recipe_jobs()
    block = Block(given.data, given.runs, given.out, device, given.minutes, given.parallel)
    left = run_block(jobs, block)
    print(f"not done yet: {', '.join(left)}; the same command goes on" if left else "done")


def name_of(device: str) -> str:
    import torch

    return torch.cuda.get_device_name() if device == "cuda" else "cpu"


if __name__ == "__main__":
    sys.exit(main())
