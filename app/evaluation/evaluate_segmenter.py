"""`steadyseg evaluate` of a segmentation network: runs the product's own loop over labelled frames."""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from steadyseg.app.console import Console, print_table, track
from steadyseg.app.evaluation.data import LabelledData, refuse_memory
from steadyseg.app.evaluation.flags import EvaluateJob
from steadyseg.app.evaluation.record import familiarity_record, print_sets
from steadyseg.app.evaluation.recordings import RecordingMetrics, print_recordings
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.model.model import Model
from steadyseg.core.segmenter import segment
from steadyseg.export.file.onnx_file import OnnxFile
from steadyseg.runtime.choose import RunOptions
from steadyseg.runtime.open_model import is_graph, make_segmenter, open_checkpoint
from steadyseg.seg.calibrate import ConformalCheck
from steadyseg.seg.data.coarse import is_right, void_of
from steadyseg.seg.evaluate import FrameMetrics, seed_frames

FIGURES = (
    "nll accuracy miou ece ece_15 ece_signed brier acc_{0} iou_{0} unc_{0} freq_{0} aurc error_recall_10 "
    "error_recall_10_ceiling consistency label_consistency change_agreement change_agreement_frozen cec"
)
"""Keys of the printed metrics; {0}: the confidence of certain pixels in percent."""
SETS = {
    "pixels covered": "coverage",
    "images: mean": "coverage_image_mean",
    "5th percentile": "coverage_image_p5",
    "classes a set": "set_size",
}
"""Columns of the table of prediction sets."""


class EvaluatedSegmenter:
    """A segmentation network and labelled frames."""

    def __init__(self, job: EvaluateJob, model: Model | OnnxFile, split: str) -> None:
        """Raises InputError if flags, classes and data do not match."""
        if job.sequence and job.protocol == "stills":
            job = replace(job, protocol="stream")
        labelled = LabelledData(job.data, split, job.protocol, job.only, model, job.sequence)
        if job.protocol == "stills" and job.method.mode is not None:
            refuse_memory(job.method.mode)
        if job.protocol == "stills" and job.every != 1:
            raise InputError(f"--every {job.every}: stills are no stream; add --protocol stream or moving-stills")
        of_graph, compute = is_graph(job.model), job.compute
        if compute.backend == "auto" and not of_graph:
            compute = replace(compute, backend="torch")
        members = tuple(map(open_checkpoint, job.members))
        run = RunOptions(**vars(compute), size=job.size, keep_probs=True, members=members, every=job.every)
        opened = make_segmenter(model, job.method if of_graph else job.method.or_default(mode="dnn"), run)
        if job.protocol == "stills":
            refuse_memory(opened.method.mode)
        self.job, self.opened, self.method, self.fit = job, opened, opened.method, opened.fit
        self.chosen = labelled.open(opened)
        self.lines = [f"backend: {opened.backend} on {opened.device} ({opened.why})"]
        if opened.method.note:
            self.lines.append(f"not calibrated: {opened.method.note}")
        self.data_name, self.split = job.data.name, None if str(job.data) == "street" else split
        self.frame_hash = self.chosen.frame_hash
        self.settings = {"sequence": job.sequence.name if job.sequence else None, "size": job.size, "every": job.every}
        self.unit = f"frames, {job.protocol}"
        self.keys = FIGURES.format(f"{100 * job.cutoff:g}").split()

    def measure(self) -> dict[str, Any]:
        """Measures in one pass over the frames; the dropout masks of a frame depend only on the seed and its number."""
        job, segmenter, chosen, classes = self.job, self.opened, self.chosen, self.opened.classes
        check = ConformalCheck(self.fit, classes) if "conformal" in self.fit else None
        live, promised = FrameMetrics.of(classes, job.cutoff), ExpectedMetrics(classes.void_id)
        recordings = RecordingMetrics(chosen, classes) if job.by else None
        started = time.perf_counter()
        stream = segment(seed_frames(chosen.frames, job.seed), segmenter)
        watched = track(stream, f"{job.protocol} {self.method.mode}", total=chosen.count)
        for place, (frame, maps) in enumerate(watched):
            live.update(frame, maps)
            promised.update(frame, maps)
            if recordings:
                recordings.update(place, frame, maps)
            if check:
                check.update(frame, maps)
        seconds, result = time.perf_counter() - started, live.result()
        parts = {"conformal": check, "recordings": recordings}
        return {
            "frames": live.frames,
            "unlabelled_frames": live.unlabelled,
            "network_frames": segmenter.network_frames,
            **result,
            "cutoff": job.cutoff,
            **describe_classes(result["class_pixels"], classes.names, result["valid_samples"]),
            **{name: part.result() for name, part in parts.items() if part},
            **promised.record(),
            "class_names": list(classes.names),
            "fps": round((live.frames + live.unlabelled) / seconds, 3),
            "frame_list": chosen.names,
        }

    def print_parts(self, record: dict[str, Any]) -> None:
        """Prints the classes, prediction sets, the parts of `--by`, and IoU per class."""
        console = Console()
        if self.job.every != 1:
            frames = record["frames"] + record["unlabelled_frames"]
            console.print(f"the network ran on {record['network_frames']} of {frames} frames", soft_wrap=True)
        constant, absent = record["constant_answer"], record["absent_classes"]
        count, known = len(record["class_names"]), sum(value is not None for value in record["iou"])
        without = f" (no pixel of {', '.join(absent)})" if absent else ""
        console.print(
            f"mIoU is of {known} of {count} classes{without}; always answering {constant['class']} has "
            f"an accuracy of {constant['accuracy']:.4f}",
            soft_wrap=True,
        )
        if "conformal" in record:
            print_sets(record["conformal"], "pixels", SETS)
            print_risk(record["conformal"], console)
        if "recordings" in record:
            print_recordings(record["recordings"], console)
        print_table("IoU per class", ("class", "iou"), zip(record["class_names"], record["iou"], strict=True))


def describe_classes(pixels: list[int], names: tuple[str, ...], total: int) -> dict[str, Any]:
    """Returns the classes without a labelled pixel, and the accuracy of always answering the commonest class.
    InputError if the labels hold only one class, as a constant answer is then perfect.
    """
    absent = [name for name, count in zip(names, pixels, strict=True) if not count]
    commonest = max(range(len(pixels)), key=pixels.__getitem__)
    if len(absent) == len(names) - 1:
        raise InputError(
            f"all labelled pixels are {names[commonest]}, so accuracy and IoU say nothing; label other classes "
            "too, or check that the void id is no object's id"
        )
    return {
        "absent_classes": absent,
        "constant_answer": {"class": names[commonest], "accuracy": pixels[commonest] / total},
    }


class ExpectedMetrics:
    """Error of the expected accuracy, and shares of novel frames, over the evaluated frames."""

    def __init__(self, void: int) -> None:
        self.void = void
        self.familiarity: list[float] = []
        self.gaps: list[float] = []

    def update(self, frame: Frame, maps: Maps) -> None:
        """Adds a frame; frames without a labelled pixel do not count."""
        if frame.label is None or maps.familiarity is None:
            return
        kept = frame.label != void_of(frame.label, self.void)
        if kept.any():
            self.familiarity.append(maps.familiarity)
            self.gaps.append(maps.expected_accuracy - float(is_right(maps.label, frame.label)[kept].mean()))

    def record(self) -> dict[str, Any]:
        """JSON values, if any. A difference is the expected accuracy minus the accuracy of one frame."""
        if not self.familiarity:
            return {}
        told = familiarity_record(self.familiarity)
        if self.gaps:
            told |= {
                "expected_accuracy_gap": float(np.mean(self.gaps)),
                "expected_accuracy_error": float(np.mean(np.abs(self.gaps))),
            }
        return told


def print_risk(record: dict[str, Any], console: Console) -> None:
    """Prints the limits of the guarantee, and the bound on the misses of one class."""
    console.print("Pixels and frames are not exchangeable: the coverage of one image is not guaranteed.")
    if risk := record.get("class_risk"):
        missed = (
            "no image holds it" if risk["risk"] is None else f"{risk['risk']:.2%} missed in {risk['images']} images"
        )
        console.print(
            f"{risk['class']}: {missed} (asked: at most {risk['level']:.0%}), {risk['reported_share']:.2%} reported"
        )
