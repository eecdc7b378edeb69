"""`steadyseg verify`: runs the proof that a graph file carries on this device, and says what the file promises."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from app.export.verify_flags import VerifyJob
from core.errors import CheckFailed, InputError, shorten
from export.file.carried_proof import CarriedProof, read_proof
from export.file.onnx_file import OnnxFile, read_onnx
from export.file.signature import type_and_shape
from export.run.graph import GraphStreams
from export.run.networks import onnxruntime_name, openvino_name
from export.run.sessions import Arrays, openvino_runner
from export.run.verify import CarriedState, Step, graph_step, verify

NUMPY = {"FLOAT": np.float32, "FLOAT16": np.float16}
ANY_NUMBER = 2
"""Streams of a call where the file takes any number."""


def run_verify(job: VerifyJob) -> int:
    """Prints one line for each fact. A device outside the bounds raises CheckFailed, which exits with 1."""
    if job.runtime == "openvino" and job.device not in ("auto", "cpu"):
        raise InputError(f"--runtime openvino runs on the CPU, got --device {job.device}; omit one of them")
    file = read_onnx(job.file)
    proof = read_proof(file.props, file.meta, str(job.file))
    streams = file.meta.streams or ANY_NUMBER
    step, where = open_step(job, file, proof, streams)
    verified = verify(proof, file.meta, step, streams, reduced=job.reduced)
    meta = file.meta
    print(f"file: {meta.source} ({meta.source_sha256[:12]}), {meta.precision}, {meta.method}")
    print(f"ran: {len(proof.plan.turns)} frames in {streams} stream{'s' * (streams > 1)} a call by {where}")
    if not verified.holds:
        wider = "" if job.reduced else "; --reduced has wider bounds, for devices that compute in TF32, bf16 or fp16"
        raise CheckFailed(f"{job.file}: not equal by {where}: {verified}{wider}")
    print(f"equal within the bounds of {'reduced precision' if job.reduced else meta.precision}: {verified}")
    print(f"speed: {verified.frame_ms:.1f} ms a call, frames of {meta.height}x{meta.width}")
    fit, measured = proof.record.get("fit"), proof.record.get("measured")
    print(f"calibrated: {words(fit)}" if isinstance(fit, Mapping) and fit else "calibrated: no")
    for figures in measured if isinstance(measured, list) else ():
        print(f"measured: {words(figures)}" if isinstance(figures, Mapping) else shorten(figures))
    print(f"licence: {meta.licence or 'not said'}")
    return 0


def open_step(job: VerifyJob, file: OnnxFile, proof: CarriedProof, streams: int) -> tuple[Step, str]:
    """Returns the file as a step in the job's library, and the words for library and device."""
    meta = file.meta
    if job.runtime == "onnxruntime":
        options = {"use_tf32": "0"} if job.device in ("auto", "cuda") and not job.reduced else {}
        graph = GraphStreams(file.data, meta, job.device, streams, options)
        return graph_step(graph), f"{onnxruntime_name(meta.precision)} on {graph.device}"
    states = zero_states(file, streams)
    shapes = {name: (streams, *value.shape[1:]) for name, value in (proof.inputs(0, meta) | states).items()}
    number = "bf16" if job.reduced else "fp32"
    return CarriedState(openvino_runner(file.data, shapes, number), states), f"{openvino_name(number)} on cpu"


def zero_states(file: OnnxFile, streams: int) -> Arrays:
    """Returns the states before the first frame."""
    kinds = {value.name: type_and_shape(value, str(file.path)) for value in file.model.graph.input}
    return {
        name: np.zeros((streams, *(int(size or 0) for size in shape[1:])), NUMPY[kind])
        for name, (kind, shape) in kinds.items()
        if name.startswith("state_")
    }


def words(record: Mapping[str, Any]) -> str:
    """Returns a record as text: `data camvid, frames 49, conformal (coverage 0.9)`; it may be a stranger's."""
    texts = []
    for key, value in record.items():
        if isinstance(value, Mapping):
            text = f"({words(value)})"
        elif isinstance(value, int | float):
            text = f"{value:.4g}"
        else:
            text = shorten(value).strip("'")
        texts.append(f"{shorten(key.replace('_', ' ')).strip(chr(39))} {text}")
    return ", ".join(texts)
