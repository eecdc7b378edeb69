"""Measures the default rule of the included networks and writes the page of docs/studies/results, its strip and record.

    python -m steadyseg.studies.results --data ../shared/data/camvid [--fresh]

Rows are kept while weights and data stay the same; --fresh measures them again.
"""

import sys
from pathlib import Path

import torch

from steadyseg.core.system.machine import keep_freed_memory
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.study import PAGES, Cache, data_digest
from steadyseg.studies.results.front import SHOWN, run_command
from steadyseg.studies.results.rule import PROTOCOLS, about, frames_of, measure, rule_digest, rule_job
from steadyseg.studies.results.strips import write_strip

PAGE = PAGES / "results"


def main() -> int:
    return run_command("results", __doc__, run)


def run(data: Path, fresh: bool) -> None:
    """Measures what is missing, then writes the page."""
    torch.set_num_threads(1)
    keep_freed_memory()  # a tenth of the time would be page faults
    cache, frames = Cache(PAGE / "record.json"), data_digest(data)
    for name in SHOWN:
        digest = rule_digest(name, frames)
        if fresh or cache.get(rule_job(name), digest) is None:
            model = read_segmenter(name)
            rows = {protocol: measure(model, frames_of(protocol, data), of) for protocol, of in PROTOCOLS.items()}
            cache.put(rule_job(name), digest, {"fits": {}, **rows}, about(name))
            print(f"{name}: done", flush=True)
    write_strip(PAGE)
    write_page("results")


if __name__ == "__main__":
    sys.exit(main())
