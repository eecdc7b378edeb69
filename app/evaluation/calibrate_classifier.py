"""`steadyseg calibrate` of an image classifier: temperature and prediction sets, stored in the checkpoint by mode."""

from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from app.evaluation.flags import CalibrateJob
from app.find_model import find_model, frame_flags, refuse_flags
from classification.calibrate import fit_sets, fit_temperature
from classification.data.held_back import open_split_of
from classification.evaluate import Classifier, batch_size, batches, default_samples
from classification.opening import open_classifier, require_classes
from core.checkpoint import load_checkpoint, save_checkpoint
from core.device import choose_device
from core.evaluation.temperature import temperature_record
from core.method import Method, settings


def calibrate_classifier(job: CalibrateJob) -> int:
    """Two passes over the pictures for each mode: one for the temperature, one with it for the sets."""
    refuse_flags(job.model, {
        f"--protocol {job.protocol}": job.protocol not in ("auto", "stills"), **frame_flags(job.method),
        "--frames": job.frames is not None,
        "--risk-class": job.risk_class is not None, "--logit-adjustment": job.logit_adjustment,
        "--own-world": job.own_world, "--stages": bool(job.stages), "--int8": job.int8,
    })  # fmt: skip
    path = find_model(job.model)
    network, meta = open_classifier(path)
    data = open_split_of(job.data, job.split, meta, job.model)
    require_classes(data.classes, meta.classes, str(job.data), job.model)
    classifier = Classifier([network], meta.mean, meta.std, choose_device(job.device), job.seed)
    samples = default_samples(job.method.samples, job.method.mode, classifier.has_dropout)
    methods = [] if job.method.mode == "bnn" else [Method("dnn")]
    methods += [Method("bnn", samples)] if samples else []
    count = -(-len(data) // batch_size(meta.height))

    def watched(title: str) -> Any:
        return track(batches(data, meta.height), title, total=count, console=Console(stderr=True))

    fitted = {}
    for method in methods:
        mode, passes, classes = method.mode, method.samples, len(meta.classes)
        found = fit_temperature(classifier, watched(f"{mode} temperature"), mode, passes, classes)
        scores, metrics = fit_sets(
            classifier, watched(f"{mode} thresholds"), mode, passes, round(found.temperature, 4), classes
        )
        fitted[method] = {
            "data": data.name, "split": job.split, "frames": len(data), "frame_list_hash": data.list_hash,
            **settings(method), "seed": job.seed, **temperature_record(found, metrics.result()),
            "conformal": {"coverage": job.coverage, **scores.thresholds(job.coverage)},
        }  # fmt: skip
    tensors, meta = load_checkpoint(path)
    for method, record in fitted.items():
        meta = meta.with_fit(method, record)
    save_checkpoint(job.output, tensors, meta)
    print_fits(fitted)
    print(job.output)
    return 0


def print_fits(fitted: dict[Method, dict[str, Any]]) -> None:
    """What was fitted, on what, and what it did there; a column for each mode."""
    first, console = next(iter(fitted.values())), Console()
    console.print(f"fitted on {first['data']} {first['split']}, {first['frames']} images", soft_wrap=True)
    table = Table("", *map(str, fitted))
    for name, figure in {
        "temperature": lambda r: f"{r['temperature']:.3f}",
        "NLL before, after": lambda r: f"{r['nll_before']:.4f}, {r['nll_after']:.4f}",
        "ECE before, after": lambda r: f"{r['ece_before']:.4f}, {r['ece_after']:.4f}",
        "labels that flip": lambda r: f"{r['flips']:.3%}",
        f"LAC threshold for {first['conformal']['coverage']:.0%}": lambda r: f"{r['conformal']['lac']:.4f}",
        f"APS threshold for {first['conformal']['coverage']:.0%}": lambda r: f"{r['conformal']['aps']:.4f}",
    }.items():
        table.add_row(name, *(figure(record) for record in fitted.values()))
    console.print(table)
