"""`steadyseg evaluate`: runs the product's own loop over labelled images and reports the metrics."""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from steadyseg.app.console import Console, figure_table, format_figure, track
from steadyseg.app.evaluation.data import EvaluationFrames, LabelledData, default_split, refuse_memory
from steadyseg.app.evaluation.flags import EvaluateJob
from steadyseg.app.evaluation.record import FRAME_KEYS, check_files, describe_run, note_fit, novelty_record, write_files
from steadyseg.app.evaluation.recordings import RecordingMetrics, print_recordings
from steadyseg.app.executors import run_options
from steadyseg.app.open_model import is_classifier, is_graph, make_segmenter, open_checkpoint, open_model
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.options import require_ranges
from steadyseg.core.segmenter import Segmenter, segment
from steadyseg.seg.calibrate import ConformalCheck
from steadyseg.seg.evaluate import EDGE_KEYS, EdgeMetrics, FrameMetrics, seed_frames

FIGURES = (
    "nll accuracy miou ece ece_15 ece_signed brier acc_{0} iou_{0} unc_{0} freq_{0} aurc error_recall_10 "
    "error_recall_10_ceiling consistency label_consistency change_agreement change_agreement_frozen cec"
)
"""Keys of the printed figures; {0}: the confidence of certain pixels in percent."""
MAX_EDGE_PX = 100
"""Widest edge: beyond it hardly a pixel of a street is away from one."""


def run_evaluate(job: EvaluateJob) -> int:
    """Measures a segmentation network or an image classifier, prints tables, and writes the JSON and the plot."""
    check_files(job)
    require_ranges(job, {"cutoff": (0, 0.999), "edge_width": (1, MAX_EDGE_PX)})
    if job.compute.precision == "auto":
        job = replace(job, compute=replace(job.compute, precision="fp32"))
    model = open_model(job.model)
    split = job.split or default_split(job.data, model)
    if is_classifier(model):
        from steadyseg.app.evaluation.evaluate_classifier import evaluate_classifier

        return evaluate_classifier(job, model, split)
    if job.sequence and job.protocol == "stills":
        job = replace(job, protocol="stream")
    labelled = LabelledData(job.data, split, job.protocol, job.only, model, job.sequence)
    if job.protocol == "stills" and job.method.mode is not None:
        refuse_memory(job.method.mode)
    of_graph = is_graph(job.model)
    compute = job.compute
    if compute.executor == "auto" and not of_graph:
        compute = replace(compute, executor="torch")
    members = tuple(open_checkpoint(name) for name in job.members)
    run = replace(run_options(compute, keep_probs=True), members=members)
    segmenter = make_segmenter(model, job.method if of_graph else job.method.or_default(mode="dnn"), run)
    if job.protocol == "stills":
        refuse_memory(segmenter.method.mode)
    console = Console(stderr=True)
    console.print(f"executor: {segmenter.executor} on {segmenter.device} ({segmenter.why})", soft_wrap=True)
    if segmenter.method.note:
        console.print(f"not calibrated: {segmenter.method.note}", soft_wrap=True)
    chosen = labelled.open(segmenter)
    named_split = None if str(job.data) == "street" else split
    fitted_on = note_fit(segmenter.fit, segmenter.method, job.data.name, named_split, console)
    result = measure(job, segmenter, chosen)
    record = {
        **describe_run(job, segmenter, segmenter.method, job.data.name, named_split),
        "sequence": job.sequence.name if job.sequence else None,
        "fitted_on": fitted_on,
        "frame_list_hash": chosen.frame_hash,
        **result,
        "frame_list": chosen.names,
    }
    write_files(job, record)
    print_result(record)
    return 0


def measure(job: EvaluateJob, segmenter: Segmenter, chosen: EvaluationFrames) -> dict[str, Any]:
    """Measures in one pass over the frames; the dropout masks of a frame depend only on the seed and its number."""
    check = ConformalCheck(segmenter.fit, segmenter.classes) if "conformal" in segmenter.fit else None
    live, promised = FrameMetrics.of(segmenter.classes, job.cutoff), NoveltyMetrics(segmenter.classes.void_id)
    edges = EdgeMetrics(segmenter.classes, job.edge_width) if "edges" in job.by else None
    recordings = RecordingMetrics(chosen, segmenter.classes) if "recording" in job.by else None
    started = time.perf_counter()
    stream = segment(seed_frames(chosen.frames, job.seed), segmenter)
    title = f"{job.protocol} {segmenter.method.mode}"
    watched = track(stream, title, total=chosen.count)
    for place, (frame, maps) in enumerate(watched):
        live.update(frame, maps)
        promised.update(frame, maps)
        if edges:
            edges.update(frame, maps)
        if recordings:
            recordings.update(place, frame, maps)
        if check:
            check.update(frame, maps, chosen.sequence(place))
    seconds, names = time.perf_counter() - started, segmenter.classes.names
    result = live.result()
    fps = round((live.frames + live.unlabelled) / seconds, 3)
    conformal = {"conformal": check.result()} if check else {}
    return {
        "frames": live.frames,
        "unlabelled_frames": live.unlabelled,
        **result,
        "cutoff": job.cutoff,
        **describe_classes(result["class_pixels"], names),
        **conformal,
        **({"edges": edges.result()} if edges else {}),
        **({"recordings": recordings.result()} if recordings else {}),
        **promised.record(),
        "class_names": list(names),
        "fps": fps,
    }


def describe_classes(pixels: list[int], names: tuple[str, ...]) -> dict[str, Any]:
    """Returns the classes without a labelled pixel, and the accuracy of a constant answer, the commonest class.
    InputError if the labels hold only one class, which makes a constant answer perfect.
    """
    absent = [name for name, count in zip(names, pixels, strict=True) if not count]
    commonest = max(range(len(pixels)), key=pixels.__getitem__)
    if len(absent) == len(names) - 1:
        raise InputError(
            f"all labelled pixels are {names[commonest]}, so accuracy and IoU would say nothing; label other classes "
            "too, or check that the void id is not that of an object"
        )
    return {
        "absent_classes": absent,
        "constant_answer": {"class": names[commonest], "accuracy": pixels[commonest] / sum(pixels)},
    }


class NoveltyMetrics:
    """Error of the expected accuracy, and shares of novel frames, over the evaluated frames."""

    def __init__(self, void: int) -> None:
        self.void = void
        self.novelty: list[float] = []
        self.gaps: list[float] = []

    def update(self, frame: Frame, maps: Maps) -> None:
        """Adds a frame; frames without a labelled pixel do not count."""
        if frame.label is None or maps.novelty is None:
            return
        kept = frame.label != self.void
        if kept.any():
            self.novelty.append(maps.novelty)
            if maps.expected_accuracy is not None:
                self.gaps.append(maps.expected_accuracy - float((maps.label == frame.label)[kept].mean()))

    def record(self) -> dict[str, Any]:
        """JSON values; empty without novelty. A difference is the expected accuracy minus the accuracy of one frame."""
        if not self.novelty:
            return {}
        told = novelty_record(self.novelty)
        if self.gaps:
            told |= {
                "expected_accuracy_gap": float(np.mean(self.gaps)),
                "expected_accuracy_error": float(np.mean(np.abs(self.gaps))),
            }
        return told


def print_result(record: dict[str, Any]) -> None:
    """Prints two tables on stdout: the figures, and IoU per class."""
    console = Console()
    title = (
        f"{record['model']}, {record['data']} {record['split'] or ''}, {record['frames']} frames, "
        f"{record['protocol']}, {record['mode']} x{record['samples']}"
    )
    figures = figure_table("metric", "value", title=title)
    keys = FIGURES.format(f"{100 * record['cutoff']:g}").split()
    for key in (*keys, *(key for key in FRAME_KEYS if key in record)):
        figures.add_row(key, format_figure(record.get(key)))
    console.print(figures)
    constant, absent = record["constant_answer"], record["absent_classes"]
    count = len(record["class_names"])
    without = f" (no pixel of {', '.join(absent)})" if absent else ""
    line = f"mIoU is of {count - len(absent)} of {count} classes{without}"
    console.print(
        f"{line}; always answering {constant['class']} has an accuracy of {constant['accuracy']:.4f}", soft_wrap=True
    )
    if "conformal" in record:
        print_conformal(record["conformal"], console)
    if "recordings" in record:
        print_recordings(record["recordings"], console)
    if "edges" in record:
        print_edges(record["edges"], console)
    classes = figure_table("class", "iou", title="IoU per class")
    for name, value in zip(record["class_names"], record["iou"], strict=True):
        classes.add_row(name, format_figure(value))
    console.print(classes)


def print_edges(record: dict[str, Any], console: Console) -> None:
    """Prints the figures of the pixels on label edges and of those away from them."""
    keys = ("share", *EDGE_KEYS)
    table = figure_table("pixels", *keys, title=f"edges of labels, {record['width']} pixels wide on either side")
    for name in ("on", "away"):
        table.add_row(name, *(format_figure(record[name][key]) for key in keys))
    console.print(table)


def print_conformal(record: dict[str, Any], console: Console) -> None:
    """Prints the coverage of the prediction sets, and the bound on the misses of one class."""
    columns = ("kind", "pixels covered", "images: mean", "5th percentile", "classes a set")
    table = figure_table(*columns, title=f"prediction sets for {record['coverage_asked']:.0%} of the pixels")
    keys = ("coverage", "coverage_image_mean", "coverage_image_p5", "set_size")
    for kind in ("lac", "aps"):
        table.add_row(kind.upper(), *(format_figure(record[kind][key]) for key in keys))
    console.print(table)
    console.print("Pixels and frames are not exchangeable: the coverage of one image is not guaranteed.")
    if risk := record.get("class_risk"):
        missed = (
            "no image holds it" if risk["risk"] is None else f"{risk['risk']:.2%} missed in {risk['images']} images"
        )
        console.print(
            f"{risk['class']}: {missed} (asked: at most {risk['level']:.0%}), {risk['reported_share']:.2%} reported"
        )
