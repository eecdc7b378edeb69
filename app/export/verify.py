"""`steadyseg verify`: runs the proof in a graph file on this device, and prints the file's promises."""

from importlib.util import find_spec
from typing import Any

import numpy as np
from onnx.helper import tensor_dtype_to_np_dtype as element_type

from steadyseg.app.console import track
from steadyseg.app.export.flags import VerifyJob
from steadyseg.core.errors import CheckFailed, InputError, printable
from steadyseg.core.method import mode_title
from steadyseg.export.file.onnx_file import OnnxFile, read_onnx
from steadyseg.export.run.carried_proof import CarriedProof, read_proof
from steadyseg.export.run.graph import GraphStream
from steadyseg.export.run.networks import onnxruntime_name, openvino_name
from steadyseg.export.run.proof_run import CarriedState, Step, graph_step, verify
from steadyseg.export.run.provider_options import read_provider_options, refuse_on_cpu
from steadyseg.export.run.sessions import Arrays, openvino_runner


def say(line: str) -> None:
    """Prints one line; a stranger's file may hold control characters."""
    print(printable(line))


def run_verify(job: VerifyJob) -> int:
    """Prints one line for each fact. A device outside the bounds raises CheckFailed, which exits with 1."""
    runtime = job.runtime or ("onnxruntime" if find_spec("onnxruntime") else "openvino")
    if runtime == "openvino" and job.device not in ("auto", "cpu"):
        raise InputError(f"--runtime openvino runs on the CPU, got --device {job.device}; omit one of them")
    file = read_onnx(job.file)
    proof = read_proof(file.props, file.meta, str(job.file))
    step, where = open_step(job, runtime, file, proof)
    if proof.plan.draws:
        step = shown(step, len(proof.plan.turns) * proof.plan.draws)
    verified = verify(proof, file.meta, step, reduced=job.reduced)
    meta = file.meta
    say(f"file: {meta.source} ({meta.source_sha256[:12]}), {meta.precision}, {mode_title(meta.method)}")
    say(f"ran: {len(proof.plan.turns)} frames by {where}")
    if not verified.holds:
        wider = "" if job.reduced else "; --reduced has wider bounds, for devices that compute in TF32, bf16 or fp16"
        raise CheckFailed(f"{job.file}: not equal by {where}: {verified}{wider}")
    say(f"equal within the file's own bounds{' for fewer bits' if job.reduced else ''}: {verified}")
    say(f"speed: {verified.frame_ms:.1f} ms a call, frames of {meta.height}x{meta.width}")
    for title, key in (("calibration", "fit"), ("measured", "measured")):
        say(f"{title}: {in_words(proof.record.get(key)) or 'none'}")
    say(f"licence: {meta.licence or 'not said'}")
    return 0


def shown(step: Step, calls: int) -> Step:
    """The step with a progress bar on stderr over `calls`, since a file may ask for 100,000 of them."""
    bar = iter(track(range(calls), "calls"))

    def counted(inputs: Arrays) -> Arrays:
        next(bar, None)
        return step(inputs)

    return counted


def in_words(value: Any) -> str:
    """JSON values as words: names with their values, between commas."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {in_words(one)}" for name, one in value.items() if one not in (None, {}, []))
    return "; ".join(map(in_words, value)) if isinstance(value, list) else str(value)


def open_step(job: VerifyJob, runtime: str, file: OnnxFile, proof: CarriedProof) -> tuple[Step, str]:
    """Returns the file as a step in the library, and a text that names library and device."""
    meta, asked = file.meta, read_provider_options(job.provider_options)
    if runtime == "onnxruntime":
        graph = GraphStream(file.data, meta, job.device, ({} if job.reduced else {"use_tf32": "0"}) | asked)
        refuse_on_cpu(graph.device, asked)
        return graph_step(graph), f"{onnxruntime_name(meta.precision)} on {graph.device}"
    refuse_on_cpu("cpu", asked)
    states = {
        one.name: np.zeros([size.dim_value for size in kind.shape.dim], element_type(kind.elem_type))
        for one in file.model.graph.input
        if one.name.startswith("state_") and (kind := one.type.tensor_type)
    }
    shapes = {name: value.shape for name, value in (proof.inputs(0, meta) | states).items()}
    number = "bf16" if job.reduced else "fp32"
    return CarriedState(openvino_runner(file.data, shapes, number), states), f"{openvino_name(number)} on cpu"
