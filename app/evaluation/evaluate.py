"""`steadyseg evaluate`: measures a network on labelled data, prints tables, and writes the report."""

from dataclasses import replace

from steadyseg.app.console import Console, print_table
from steadyseg.app.evaluation.data import default_split
from steadyseg.app.evaluation.evaluate_classifier import EvaluatedClassifier
from steadyseg.app.evaluation.evaluate_segmenter import EvaluatedSegmenter
from steadyseg.app.evaluation.flags import EvaluateJob
from steadyseg.app.evaluation.record import FRAME_KEYS, describe_run, note_fit
from steadyseg.app.report_file import check_place, write_json
from steadyseg.core.method import mode_title
from steadyseg.core.options import require_ranges
from steadyseg.runtime.open_model import is_classifier, open_model


def run_evaluate(job: EvaluateJob) -> int:
    """Measures a segmentation network or an image classifier."""
    if job.report:
        check_place(job.report, overwrite=job.overwrite)
    require_ranges(job, {"cutoff": (0, 0.999)})
    if job.compute.precision == "auto":
        job = replace(job, compute=replace(job.compute, precision="fp32"))
    model = open_model(job.model)
    split = job.split or default_split(job.data, model)
    network = (EvaluatedClassifier if is_classifier(model) else EvaluatedSegmenter)(job, model, split)
    console = Console(stderr=True)
    for line in network.lines:
        console.print(line, soft_wrap=True)
    fitted_on = note_fit(network.fit, network.method, network.data_name, network.split, console)
    record = {
        **describe_run(network.job, network.opened, network.method, network.data_name, network.split),
        **network.settings,
        "fitted_on": fitted_on,
        "frame_list_hash": network.frame_hash,
        **network.measure(),
    }
    if job.report:
        write_json(job.report, record)
    keys = [*network.keys, *(key for key in FRAME_KEYS if key in record)]
    data = " ".join(filter(None, (network.data_name, network.split)))
    title = f"{record['model']}, {data}, {record['frames']} {network.unit}, {mode_title(network.method)}"
    print_table(title, ("metric", "value"), [(key, record.get(key)) for key in keys])
    network.print_parts(record)
    return 0
