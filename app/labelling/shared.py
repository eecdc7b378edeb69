"""The parts that the commands of labels share: the checks before any work, and the table."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from steadyseg.app.labelling.flags import PickJob, SuspectsJob
from steadyseg.app.open_model import open_model, refuse_classifier
from steadyseg.core.errors import InputError
from steadyseg.core.method import MethodOptions
from steadyseg.core.model.model import Model
from steadyseg.core.system.files import require_new_folder
from steadyseg.export.file.onnx_file import OnnxFile


def open_network(job: PickJob | SuspectsJob) -> Model | OnnxFile:
    """Opens the job's network; InputError for an unfit model, number or output."""
    sources = job.sources if isinstance(job, PickJob) else ()
    require_new_folder(job.output, [*sources, job.model, *filter(None, [job.data])], overwrite=job.overwrite)
    if job.count < 1:
        raise InputError(f"-n must be 1 or more, got {job.count}")
    model = open_model(job.model)
    if isinstance(model, Model):
        refuse_classifier(model.meta, model.name)
    return model


def single_frames(model: Model | OnnxFile) -> MethodOptions:
    """Returns the method for single frames: one pass without dropout; a graph file computes its own method."""
    return MethodOptions(mode="dnn") if isinstance(model, Model) else MethodOptions()


def write_table(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Writes rows of equal keys as CSV."""
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
