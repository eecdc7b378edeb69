"""The frame of every study: opens networks and pictures, watches the time, saves the report after every part."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from steadyseg.app.console import Console, progress_bar
from steadyseg.studies.analysis.flags import StudyJob, StudyOptions
from steadyseg.studies.analysis.subjects import StudyTarget, open_study_targets
from steadyseg.studies.harness.machine import about_torch, peak_rss_bytes
from steadyseg.studies.harness.pictures import batches_of
from steadyseg.studies.harness.report_folder import Table

T = TypeVar("T")
Results = dict[str, Any]


class StudyContext:
    """The networks of a study, its time limit, and its notes."""

    def __init__(self, job: StudyJob, targets: Sequence[StudyTarget], show: bool = True) -> None:
        self.job: Any = job
        self.targets = targets
        self.options: StudyOptions = job.options
        self.notes: list[str] = []
        self.began, self.cpu_began = time.perf_counter(), time.process_time()
        self._console = Console(stderr=True, quiet=not show)

    @property
    def is_segmentation(self) -> bool:
        """True if the networks label pixels."""
        return self.targets[0].subject.is_segmentation

    @property
    def is_over(self) -> bool:
        return time.perf_counter() - self.began >= self.options.max_seconds

    def batches(self, most: int | None = None) -> list[range]:
        """Numbers of the pictures that all networks look at together: as many as the largest pictures allow, or
        `most`."""
        size = min(target.pictures.batch for target in self.targets)
        return batches_of(len(self.targets[0].pictures), size if most is None else most)

    def track(self, items: Sequence[T], title: str) -> Iterator[T]:
        """Yields the items with a progress bar on stderr; ends early when max_seconds are over."""
        with progress_bar(title, len(items), self._console) as show:
            for done, item in enumerate(items):
                if done and self.is_over:
                    limit = f"max_seconds={self.options.max_seconds:g}"
                    self.note(f"{title}: {done} of {len(items)} done when {limit} were over")
                    return
                yield item
                show(done + 1)

    def note(self, words: str) -> None:
        """Adds a note to the report, unless it is there already."""
        if words not in self.notes:
            self.notes.append(words)


@dataclass(frozen=True)
class Study:
    """One study: its measurement, and the tables of its results."""

    name: str
    title: str
    about: str
    """Meaning of the figures; the report begins with it."""
    measure: Callable[[StudyContext], Iterator[Results]]
    """Yields the results so far after every part; the last are the whole."""
    tables: Callable[[Results], list[Table]]
    images: tuple[int, int]
    """Pictures without --images: for classifiers, for segmentation networks."""
    needs_labels: bool = True
    split: str = "test"


def run(study: Study, job: StudyJob, keep: Callable[[Results], None], show: bool = True) -> Results:
    """Returns the whole record. `keep` gets the record so far after every part; an interruption costs one part."""
    options = job.options
    split = options.split or study.split
    torch.manual_seed(options.seed)
    targets = open_study_targets(options, split, study.images, study.needs_labels)
    context = StudyContext(job, targets, show)
    about = describe(study, context)
    general = targets[0].pictures.notes(options.images, options.seed)
    results: Results = {}
    for results in study.measure(context):
        keep(about | costs(context) | {"notes": ["unfinished", *context.notes], "results": results})
    return about | costs(context) | {"notes": [*general, *context.notes], "results": results}


def describe(study: Study, context: StudyContext) -> Results:
    """Describes networks, data and settings, so that the study can be repeated."""
    return {
        "study": study.name,
        "models": [
            target.subject.about()
            | {
                "options": target.subject.meta.options,
                "parameters": sum(weight.numel() for weight in target.subject.network.parameters()),
            }
            for target in context.targets
        ],
        **context.targets[0].pictures.about(context.options.seed),
        **about_torch(context.targets[0].subject.device),
    }


def costs(context: StudyContext) -> Results:
    """Seconds by the wall and of all cores, and the most memory that the process has held."""
    peak = peak_rss_bytes()
    return {
        "seconds": round(time.perf_counter() - context.began, 1),
        "cpu_seconds": round(time.process_time() - context.cpu_began, 1),
        "peak_memory_mb": None if peak is None else round(peak / 2**20),
    }
