"""`steadyseg evaluate` of an image classifier: all metrics by ensemble size, in one pass over the pictures."""

import time
from typing import Any

from steadyseg.app.classifiers import make_classifier
from steadyseg.app.console import print_table, track
from steadyseg.app.evaluation.flags import EvaluateJob
from steadyseg.app.evaluation.record import familiarity_record, print_sets
from steadyseg.classification.evaluate import SizeMetrics, batch_size, batches
from steadyseg.classification.pretrained import require_classes
from steadyseg.core.evaluation.conformal import Coverage
from steadyseg.core.evaluation.metrics import CUTOFF
from steadyseg.core.model.model import Model
from steadyseg.export.file.onnx_file import OnnxFile
from steadyseg.runtime.open_model import frame_flags, open_checkpoint, refuse_flags

HEAD_KEYS = (
    "nll accuracy top_5_accuracy ece ece_15 ece_signed brier acc_90 unc_90 freq_90 aurc error_recall_10 "
    "error_recall_10_ceiling entropy disagreement"
).split()
SIZE_KEYS = ("nll", "accuracy", "ece", "ece_15", "brier", "aurc")
"""Columns of the table by ensemble size; they fit 80 characters."""
SETS = {"images covered": "coverage", "classes a set": "set_size"}
"""Columns of the table of prediction sets."""
MAX_CLASSES = 10
"""Number of classes in the table by class, which shows the hardest classes; the JSON has all classes."""


class EvaluatedClassifier:
    """An image classifier and labelled pictures."""

    keys, unit = HEAD_KEYS, "images"

    def __init__(self, job: EvaluateJob, model: Model | OnnxFile, split: str) -> None:
        """Raises InputError for flags about frames, and for data of other classes."""
        refuse_flags(
            job.model,
            {
                f"--protocol {job.protocol}": job.protocol != "stills",
                **frame_flags(job.method),
                "--only": job.only is not None,
                "--sequence": job.sequence is not None,
                "--by": bool(job.by),
                "--config cutoff": job.cutoff != CUTOFF,
                "--config size": job.size is not None,
                "--every": job.every != 1,
                f"--precision {job.compute.precision}": job.compute.precision in ("bf16", "fp16"),
            },
        )
        members = [open_checkpoint(name) for name in job.members]
        opened = make_classifier(model, job.method, members, job.compute.backend, job.compute.device, job.seed)
        self.data = opened.open_data(job.data, split)
        require_classes(self.data.classes, opened.classes, str(job.data), job.model)
        self.mode = list(opened.sizes)[-1]
        self.job, self.opened, self.method, self.fit = job, opened, opened.methods[self.mode], opened.fit(self.mode)
        self.lines = [f"backend: {opened.backend} on {opened.device}"]
        self.data_name, self.split, self.frame_hash = self.data.name, split, self.data.list_hash
        self.settings = {"temperatures": {mode: method.temperature for mode, method in opened.methods.items()}}

    def measure(self) -> dict[str, Any]:
        """Measures in one pass over the pictures. The largest ensemble of the last mode gives the main metrics; `rows`
        has the metrics of every mode and size."""
        classifier, data, fitted = self.opened, self.data, self.fit.get("conformal", {})
        by_mode = {mode: SizeMetrics(len(classifier.classes), sizes) for mode, sizes in classifier.sizes.items()}
        sets = Coverage(fitted["lac"], None) if fitted else None
        started = time.perf_counter()
        count = -(-len(data) // batch_size(classifier.size))
        shares: list[float] = []
        for batch in track(batches(data, classifier.size), f"{data.name} {self.mode}", total=count):
            for mode, metrics in by_mode.items():
                last = metrics.update(classifier.by_size(batch, mode), batch[2])
                if last.scores is not None and classifier.reference is not None:
                    shares += [classifier.reference.share(score) for score in last.scores.score.tolist()]
            if sets:
                sets.update(last.probs.cpu().T, batch[2])
        seconds = time.perf_counter() - started
        largest = by_mode[self.mode].full[classifier.sizes[self.mode][-1]]
        held = sets.result() if sets else {}
        found = {"coverage_asked": fitted["coverage"], "lac": {key: held[key] for key in SETS.values()}} if sets else {}
        return {
            "frames": len(data),
            **largest.figures(),
            **largest.details(),
            **({"conformal": found} if sets else {}),
            **(familiarity_record(shares) if shares else {}),
            "rows": [{"mode": mode, **row} for mode, metrics in by_mode.items() for row in metrics.rows()],
            "curve": by_mode[self.mode].curve(),
            "images_per_s": round(len(data) / seconds, 3),
            "class_names": list(classifier.classes.names),
        }

    def print_parts(self, record: dict[str, Any]) -> None:
        """Prints the metrics by ensemble size, prediction sets, and the hardest classes."""
        if len(record["rows"]) > 1:
            sizes = "dropout passes (0: dropout off)" if record["mode"] == "bnn" else "networks"
            rows = [(str(row["n"]), *map(row.get, SIZE_KEYS)) for row in record["rows"]]
            print_table(f"by number of {sizes}", ("n", *SIZE_KEYS), rows)
        if "conformal" in record:
            print_sets(record["conformal"], "images", SETS)
        by_class = zip(record["class_accuracy"], record["class_names"], strict=True)
        hardest = sorted((accuracy, name) for accuracy, name in by_class if accuracy is not None)[:MAX_CLASSES]
        rows = [(name, accuracy) for accuracy, name in hardest]
        print_table("accuracy by class, the hardest first", ("class", "accuracy"), rows)
