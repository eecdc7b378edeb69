"""All robustness studies that networks and data allow, as one record: what the study `robustness` reports."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from steadyseg.app.sources.open_source import open_source
from steadyseg.core.errors import InputError
from steadyseg.core.system.machine import choose_device
from steadyseg.studies.harness.machine import about_torch
from steadyseg.studies.harness.pictures import Pictures, open_pictures
from steadyseg.studies.harness.target import TargetNetwork, open_targets
from steadyseg.studies.robustness.attacks import study_attacks
from steadyseg.studies.robustness.bands import study_bands
from steadyseg.studies.robustness.corruptions import study_corruptions
from steadyseg.studies.robustness.flags import STUDIES, RobustnessJob, RobustnessOptions, StudyName, Watch, no_progress
from steadyseg.studies.robustness.ood import require_recorded, study_ood
from steadyseg.studies.robustness.perturbations import study_perturbations
from steadyseg.studies.robustness.stream import study_stream, val_stream

COSTLY_STILLS, COSTLY_IMAGES = 3, 50
"""Pictures of the studies that look at each tens of times: with all defaults two cores need less than half an hour."""
COSTLY = ("perturbations", "attacks", "bands")

Study = Callable[[Sequence[TargetNetwork], Pictures, RobustnessOptions, Watch], dict[str, Any]]
RUN: dict[StudyName, Study] = {
    "corruptions": study_corruptions,
    "stream": study_stream,
    "perturbations": study_perturbations,
    "attacks": study_attacks,
    "bands": study_bands,
    "ood": study_ood,
}


def robustness(
    job: RobustnessJob, watch: Watch = no_progress, keep: Callable[[dict[str, Any]], None] = lambda _: None
) -> dict[str, Any]:
    """The record of the named studies, or of all that the data allows; several networks see the same pictures.

    JSON values, fractions in 0..1. `notes` say what was left out and why. After each study `keep` gets the record so
    far, so that who is interrupted loses one study and not all. Raises InputError for bad input, if it can be seen
    before any study runs.
    """
    started, options = time.perf_counter(), job.options
    subjects = open_targets(job.models, choose_device(job.device), options.calibrated != "off")
    for subject in subjects:
        if options.calibrated == "on" and not subject.calibrated_methods:
            raise InputError(f"--calibrated on: {subject.name} is not calibrated; omit it, or use steadyseg calibrate")
    if options.sample_counts and not any(subject.has_dropout for subject in subjects):
        raise InputError("--config sample_counts asks for dropout passes and there is no dropout to draw; omit it")
    pictures = open_pictures(job.data, job.split, subjects, options.images, options.seed)
    chosen, notes = chosen_studies(subjects, pictures, job.only, options)
    check_sources(options)
    few = pictures.first(options.costly_images or (COSTLY_STILLS if subjects[0].is_segmentation else COSTLY_IMAGES))
    notes += general_notes(subjects, pictures, few, chosen, options)
    head, done = about(subjects, pictures, options), dict[str, Any]()
    record: dict[str, Any] = {}
    for place, name in enumerate(chosen, start=1):
        begun = time.perf_counter()
        found = RUN[name](subjects, few if name in COSTLY else pictures, options, watch)
        done[name] = found | {"seconds": round(time.perf_counter() - begun, 1)}
        missing = [f"unfinished: without {', '.join(chosen[place:])}"] if chosen[place:] else []
        seconds = round(time.perf_counter() - started, 1)
        record = {**head, "notes": [*missing, *notes], "studies": done, "seconds": seconds}
        keep(record)
    return record


def about(subjects: Sequence[TargetNetwork], pictures: Pictures, options: RobustnessOptions) -> dict[str, Any]:
    """Describes networks, data and settings, so that the study can be repeated."""
    return {
        "models": [
            subject.about()
            | {
                "temperatures": {str(method): subject.temperature(method) for method in subject.calibrated_methods},
                "width": subject.meta.width,
            }
            for subject in subjects
        ],
        **pictures.about(options.seed),
        **about_torch(subjects[0].device),
    }


def general_notes(
    subjects: Sequence[TargetNetwork],
    pictures: Pictures,
    few: Pictures,
    chosen: Sequence[str],
    options: RobustnessOptions,
) -> list[str]:
    """Notes that hold for all studies."""
    notes = pictures.notes(options.images, options.seed)
    costly = [name for name in COSTLY if name in chosen]
    if costly and len(few) < len(pictures):
        notes.append(f"{', '.join(costly)}: the first {len(few)} of these pictures alone (costly_images)")
    notes += [f"{s.name}: no dropout, so only one pass was made" for s in subjects if not s.has_dropout]
    for subject in subjects:
        for method in subject.calibrated_methods:
            fitted = subject.fit(method)
            told = f"{subject.name}: {method} is calibrated, temperature {float(fitted['temperature']):.3f}"
            if (fitted.get("data"), fitted.get("split")) == (pictures.data, pictures.split):
                told += f", fitted on {pictures.data} {pictures.split} itself, which flatters NLL and ECE"
            notes.append(told)
        if subject.calibrated_methods:
            notes.append(f"{subject.name}: its other methods are not calibrated; --calibrated off compares all without")
    return notes


def chosen_studies(
    subjects: Sequence[TargetNetwork], pictures: Pictures, asked: Sequence[StudyName], options: RobustnessOptions
) -> tuple[list[StudyName], list[str]]:
    """(studies in order, what was left out and why); InputError for one that is asked for and cannot be."""
    lacking = {name: reason for name in STUDIES if (reason := why_unavailable(name, subjects, pictures, options))}
    for name in asked:
        if name in lacking:
            raise InputError(f"--only {name}: {lacking[name]}")
    chosen = [name for name in STUDIES if (name in asked if asked else name not in lacking)]
    if options.ood and "ood" not in chosen:
        raise InputError("--ood is for the study ood, which --only leaves out")
    left_out = [f"{name} left out: {reason}" for name, reason in lacking.items() if not asked]
    return chosen, left_out if subjects[0].is_segmentation else [
        told for told in left_out if not told.startswith("stream")
    ]


def check_sources(options: RobustnessOptions) -> None:
    """Opens the sources of the study ood, so that a mistake shows now and not after the first study."""
    for spec in options.ood:
        with open_source(spec) as source:
            require_recorded(spec, source)


def why_unavailable(
    name: StudyName, subjects: Sequence[TargetNetwork], pictures: Pictures, options: RobustnessOptions
) -> str | None:
    """Says why a study cannot run; None where it can."""
    if name == "ood" and not options.ood:
        return "--ood names no video or folder of out-of-distribution pictures"
    if name == "stream":
        if not subjects[0].is_segmentation:
            return "a classifier looks at single pictures, not at a stream"
        try:
            val_stream(pictures, subjects[0], options.stream_frames)
        except InputError as error:
            return str(error)
    return None
