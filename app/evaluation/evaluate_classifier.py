"""`steadyseg evaluate` of an image classifier: every figure by ensemble size, in one pass over the pictures."""

import time
from typing import Any

from steadyseg.app.classifiers import OpenClassifier, make_classifier
from steadyseg.app.console import Console, figure_table, format_figure, track
from steadyseg.app.evaluation.flags import EvaluateJob
from steadyseg.app.evaluation.record import FRAME_KEYS, describe_run, note_fit, novelty_record, write_files
from steadyseg.app.open_model import frame_flags, open_checkpoint, refuse_flags
from steadyseg.classification.data.labelled import ClassificationSet
from steadyseg.classification.evaluate import SizeMetrics, batch_size, batches
from steadyseg.classification.pretrained import require_classes
from steadyseg.core.evaluation.conformal import Coverage
from steadyseg.core.evaluation.metrics import CUTOFF
from steadyseg.core.method import ModeName
from steadyseg.core.model.model import Model
from steadyseg.export.file.onnx_file import OnnxFile

HEAD_KEYS = tuple(
    (
        "nll accuracy top_5_accuracy ece ece_15 ece_signed brier acc_90 unc_90 freq_90 aurc error_recall_10 "
        "error_recall_10_ceiling entropy disagreement"
    ).split()
)
SIZE_KEYS = ("nll", "accuracy", "ece", "ece_15", "brier", "aurc")
"""Columns of the table by ensemble size: what fits 80 characters."""
MAX_CLASSES = 10
"""Classes in the table by class, the hardest ones; the JSON has all."""


def evaluate_classifier(job: EvaluateJob, model: Model | OnnxFile, split: str) -> int:
    """Measures an image classifier, prints tables, and writes the JSON and the plot."""
    refuse_flags(
        job.model,
        {
            f"--protocol {job.protocol}": job.protocol != "stills",
            **frame_flags(job.method),
            "--only": job.only is not None,
            "--sequence": job.sequence is not None,
            "--by": bool(job.by),
            "--config cutoff": job.cutoff != CUTOFF,
            "--config provider_options": bool(job.compute.provider_options),
            f"--precision {job.compute.precision}": job.compute.precision in ("bf16", "fp16"),
        },
    )
    members = [open_checkpoint(name) for name in job.members]
    classifier = make_classifier(model, job.method, members, job.compute.executor, job.compute.device, job.seed)
    data = classifier.open_data(job.data, split)
    require_classes(data.classes, classifier.classes, str(job.data), job.model)
    console, mode = Console(stderr=True), list(classifier.sizes)[-1]
    console.print(f"executor: {classifier.executor} on {classifier.device}", soft_wrap=True)
    fitted_on = note_fit(classifier.fit(mode), classifier.methods[mode], data.name, split, console)
    record = {
        **describe_run(job, classifier, classifier.methods[mode], data.name, split),
        "temperatures": {mode: method.temperature for mode, method in classifier.methods.items()},
        "fitted_on": fitted_on,
        "frame_list_hash": data.list_hash,
        **measure(classifier, data, mode, console),
        "class_names": list(classifier.classes.names),
    }
    write_files(job, record)
    print_result(record)
    return 0


def measure(
    classifier: OpenClassifier, data: ClassificationSet, headline: ModeName, console: Console
) -> dict[str, Any]:
    """Measures in one pass over the pictures. The headline's mode gives the main figures, by its largest ensemble;
    `rows` has the figures of every mode and size."""
    classes = len(classifier.classes)
    by_mode = {mode: SizeMetrics(classes, sizes) for mode, sizes in classifier.sizes.items()}
    fitted = classifier.fit(headline).get("conformal", {})
    sets = [Coverage(kind, fitted[kind], None) for kind in ("lac", "aps") if kind in fitted]
    started = time.perf_counter()
    count = -(-len(data) // batch_size(classifier.size))
    shares: list[float] = []
    for batch in track(batches(data, classifier.size), f"{data.name} {headline}", total=count):
        for mode, metrics in by_mode.items():
            last = metrics.update(classifier.by_size(batch, mode), batch[2])
            if last.novelty is not None and classifier.reference is not None:
                shares += [classifier.reference.share(score) for score in last.novelty.score.tolist()]
        for coverage in sets:
            coverage.update(last.probs.cpu().T, batch[2])
    seconds = time.perf_counter() - started
    largest = by_mode[headline].full[classifier.sizes[headline][-1]]
    asked = {"coverage_asked": fitted["coverage"]} if sets else {}
    found = {one.method: {key: one.result()[key] for key in ("coverage", "set_size")} for one in sets}
    return {
        "frames": len(data),
        **largest.figures(),
        **largest.details(),
        **({"conformal": asked | found} if sets else {}),
        **(novelty_record(shares) if shares else {}),
        "rows": [{"mode": mode, **row} for mode, metrics in by_mode.items() for row in metrics.rows()],
        "curve": by_mode[headline].curve(),
        "images_per_s": round(len(data) / seconds, 3),
    }


def print_result(record: dict[str, Any]) -> None:
    """Prints tables on stdout: the headline's figures, those by ensemble size, the hardest classes."""
    console = Console()
    title = f"{record['model']}, {record['data']} {record['split']}, {record['frames']} images, "
    console.print(title + f"{record['mode']} x{record['samples']}", soft_wrap=True)
    figures = figure_table("metric", "value")
    for key in (*HEAD_KEYS, *(key for key in FRAME_KEYS if key in record)):
        figures.add_row(key, format_figure(record[key]))
    console.print(figures)
    if len(record["rows"]) > 1:
        print_sizes(record, console)
    if "conformal" in record:
        print_sets(record["conformal"], console)
    by_class = zip(record["class_accuracy"], record["class_names"], strict=True)
    hardest = sorted((accuracy, name) for accuracy, name in by_class if accuracy is not None)[:MAX_CLASSES]
    console.print("accuracy by class, the hardest first")
    classes = figure_table("class", "accuracy")
    for accuracy, name in hardest:
        classes.add_row(name, format_figure(accuracy))
    console.print(classes)


def print_sizes(record: dict[str, Any], console: Console) -> None:
    """Prints a row of figures for each ensemble size."""
    console.print(
        "by number of dropout passes (0: dropout off)" if record["mode"] == "bnn" else "by number of networks"
    )
    table = figure_table("n", *SIZE_KEYS)
    for row in record["rows"]:
        table.add_row(str(row["n"]), *(format_figure(row[key]) for key in SIZE_KEYS))
    console.print(table)


def print_sets(record: dict[str, Any], console: Console) -> None:
    """Prints how often the prediction sets hold the true class, and their mean size."""
    console.print(f"prediction sets for {record['coverage_asked']:.0%} of the images")
    table = figure_table("kind", "images covered", "classes a set")
    for kind in ("lac", "aps"):
        table.add_row(kind.upper(), *(format_figure(record[kind][key]) for key in ("coverage", "set_size")))
    console.print(table)
