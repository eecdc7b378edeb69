"""`steadyseg calibrate` of an image classifier: temperature and prediction sets, stored in the checkpoint by mode."""

from dataclasses import replace
from typing import Any

from rich.table import Table
from torch.nn import Module

from steadyseg.app.console import Console, track
from steadyseg.app.evaluation.flags import CalibrateJob
from steadyseg.app.evaluation.record import describe_novelty, fit_rows
from steadyseg.app.open_model import frame_flags, refuse_flags
from steadyseg.classification.calibrate import fit_sets, fit_temperature
from steadyseg.classification.data.labelled import ClassificationSet
from steadyseg.classification.data.open import open_split_of, open_trained
from steadyseg.classification.evaluate import Classifier, batch_size, batches, default_samples
from steadyseg.classification.novelty import default_stages, fit_statistics
from steadyseg.classification.pretrained import build_members, require_classes
from steadyseg.core.dropout import set_dropout_active
from steadyseg.core.errors import InputError
from steadyseg.core.evaluation.temperature import temperature_record
from steadyseg.core.method import Method, settings
from steadyseg.core.model.checkpoint import CheckpointMeta, without_novelty
from steadyseg.core.model.model import Model
from steadyseg.core.novelty.record import NoveltyFit
from steadyseg.core.system.machine import choose_device


def calibrate_classifier(job: CalibrateJob, model: Model) -> int:
    """Fits each mode in two passes over the pictures: the temperature, then with it the prediction sets."""
    refuse_flags(
        job.model,
        {
            f"--protocol {job.protocol}": job.protocol not in ("auto", "stills"),
            **frame_flags(job.method),
            "--risk-class": job.risk_class is not None,
            "--logit-adjustment": job.logit_adjustment,
            "--int8": job.int8,
        },
    )
    if job.novelty and job.split == "train":
        raise InputError(
            "--novelty --split train: novelty is fitted on pictures that it was not trained on; give another"
        )
    if job.novelty and job.method.mode == "bnn":
        raise InputError("--novelty --mode bnn: a classifier tells novelty without dropout; use --mode dnn or omit it")
    [network], meta = build_members([model]), model.meta
    data = open_split_of(job.data, job.split, meta, job.model)
    require_classes(data.classes, meta.classes, str(job.data), job.model)
    classifier = Classifier([network], meta.mean, meta.std, choose_device(job.device))
    samples = default_samples(job.method.samples, job.method.mode, classifier.has_dropout)
    methods = [] if job.method.mode == "bnn" else [Method("dnn")]
    methods += [Method("bnn", samples)] if samples else []
    count = -(-len(data) // batch_size(meta.height))

    def watched(title: str) -> Any:
        return track(batches(data, meta.height), title, total=count)

    novelty = fit_novelty(job, network, meta, data) if job.novelty else None
    if novelty:
        meta = replace(meta, novelty=novelty.record)
        model = model.with_record(meta, without_novelty(model.tensors) | novelty.tensors)
    fitted = {}
    for method in methods:
        mode, passes, classes = method.mode, method.samples, len(meta.classes)
        found = fit_temperature(classifier, watched(f"{mode} temperature"), mode, passes, classes)
        scores, metrics = fit_sets(
            classifier, watched(f"{mode} thresholds"), mode, passes, round(found.temperature, 4), classes
        )
        fitted[method] = {
            "data": data.name,
            "split": job.split,
            "frames": len(data),
            "frame_list_hash": data.list_hash,
            **settings(method),
            **temperature_record(found, metrics.result()),
            "conformal": {"coverage": job.coverage, **scores.thresholds(job.coverage)},
        }
    for method, record in fitted.items():
        meta = meta.with_fit(method, record)
    model.with_record(meta).save(job.output)
    print_fits(fitted)
    if novelty:
        print(describe_novelty(novelty.record["about"]))
    print(job.output)
    return 0


def fit_novelty(job: CalibrateJob, network: Module, meta: CheckpointMeta, data: ClassificationSet) -> NoveltyFit:
    """Fits novelty on the pictures that the network was trained on and those of the split."""
    trained = open_trained(job.data, meta, job.model)
    set_dropout_active(network, False)
    stages = default_stages(network)
    return fit_statistics(network, meta, trained, data, stages, choose_device(job.device), track)


def print_fits(fitted: dict[Method, dict[str, Any]]) -> None:
    """Prints the fits, the data that they were made on, and their effect on them, with a column for each mode."""
    first, console = next(iter(fitted.values())), Console()
    console.print(f"fitted on {first['data']} {first['split']}, {first['frames']} images", soft_wrap=True)
    table = Table("", *map(str, fitted))
    rows = [fit_rows(record) for record in fitted.values()]
    for name in rows[0]:
        table.add_row(name, *(row[name] for row in rows))
    console.print(table)
