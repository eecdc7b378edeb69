"""`steadyseg calibrate` of a checkpoint or of a graph file, which is written anew with what was fitted."""

from dataclasses import replace
from pathlib import Path

from steadyseg.app.evaluation.calibrate import (
    calibrate_checkpoint,
    check_flags,
    fit_method,
    of_stills,
    print_fits,
    what_remains,
)
from steadyseg.app.evaluation.calibrate_segmenter import SegmenterFits
from steadyseg.app.evaluation.flags import CalibrateJob
from steadyseg.app.export.command import export_model
from steadyseg.app.export.flags import ExportJob
from steadyseg.app.export.onnx_network import OnnxNetwork
from steadyseg.app.open_model import is_graph
from steadyseg.core.errors import InputError
from steadyseg.core.method import MethodOptions, PassOptions, draws_dropout, settings
from steadyseg.core.preprocess import Normalize
from steadyseg.export.file.foreign import ForeignGraph
from steadyseg.export.file.onnx_file import OnnxFile, read_onnx
from steadyseg.export.file.subgraph import IMAGE, LOGITS, network_alone
from steadyseg.export.run.carried_proof import PROOF_KEY
from steadyseg.seg.any_network import GivenModel


def run_calibrate(job: CalibrateJob) -> int:
    """Fits temperature, prediction sets and a class's bound. A graph file is proven and written as by `export`."""
    check_flags(job)
    if not is_graph(job.model):
        return calibrate_checkpoint(job)
    file = read_onnx(Path(job.model))
    held, model = file.meta.method, model_of(file)
    MethodOptions(**vars(job.method)).require(held, job.model)
    job = of_stills(replace(job, method=PassOptions(**settings(held))))
    fits = SegmenterFits(job, model)
    (method,) = fits.methods
    record, metrics = fit_method(job, fits, method)
    meta = replace(model.meta.with_fit(method, record), thresholds=what_remains(job, fits, method, metrics))
    print_fits({method: record})
    export = ExportJob(
        job.model,
        job.output,
        stateful=True,
        streams="1",
        precision="fp32",
        with_proof=PROOF_KEY in file.props,
        overwrite=job.overwrite,
        method=MethodOptions(**settings(method)),
    )
    return export_model(export, replace(model, meta=meta))


def model_of(file: OnnxFile) -> GivenModel:
    """Returns a graph file as a model without calibration; InputError for one that a checkpoint can make better."""
    meta, method = file.meta, file.meta.method
    plain = meta.kind == "stream" and meta.precision == "fp32" and meta.streams == 1 and not method.lag
    if not plain or draws_dropout(method.mode) or meta.reference_scores:
        raise InputError(
            f"{file.path}: expected a file of one stream in fp32 without dropout, lag and familiarity; calibrate its "
            "checkpoint and export again"
        )
    digest, network, size = meta.source_sha256, network_alone(file.model), (meta.height, meta.width)
    data = network.SerializeToString()
    graph = ForeignGraph(file.path, data, digest, network, IMAGE, (LOGITS,), False, size, False, ())
    given = OnnxNetwork(graph, Normalize(meta.mean, meta.std), len(meta.classes))
    record, source = replace(meta.record(), calibration={}), Path(meta.source)
    return GivenModel(str(file.path), source, digest, record, {}, {}, given, is_file=False)
