"""`steadyseg verify`: runs the proof in a graph file on this device, and prints the file's promises."""

from importlib.util import find_spec

import numpy as np
from onnx.helper import tensor_dtype_to_np_dtype as element_type

from steadyseg.app.export.flags import VerifyJob
from steadyseg.core.errors import CheckFailed, InputError, printable
from steadyseg.core.method import mode_title
from steadyseg.export.file.onnx_file import OnnxFile, read_onnx
from steadyseg.export.file.sessions import openvino_runner
from steadyseg.runtime.carried_proof import TURNS, CarriedState, Step, graph_step, inputs_of, read_proof, verify
from steadyseg.runtime.graph_backend import GraphStream
from steadyseg.runtime.networks import onnxruntime_name, openvino_name


def say(line: str) -> None:
    """Prints one line; a stranger's file may hold control characters."""
    print(printable(line))


def run_verify(job: VerifyJob) -> int:
    """Prints one line for each fact. A device outside the bounds raises CheckFailed, which exits with 1."""
    runtime = job.runtime or ("onnxruntime" if find_spec("onnxruntime") else "openvino")
    if runtime == "openvino" and job.device not in ("auto", "cpu"):
        raise InputError(f"--runtime openvino runs on the CPU, got --device {job.device}; omit one of them")
    file = read_onnx(job.file)
    meta, proof = file.meta, read_proof(file.props, file.meta, str(job.file))
    step, where = open_step(job, runtime, file, proof["frame"])
    verified = verify(proof, meta, step, reduced=job.reduced)
    say(f"file: {meta.source} ({meta.source_sha256[:12]}), {meta.precision}, {mode_title(meta.method)}")
    say(f"ran: {len(TURNS)} frames by {where}")
    if not verified.holds:
        wider = "" if job.reduced else "; --reduced has wider bounds, for devices that compute in TF32, bf16 or fp16"
        raise CheckFailed(f"{job.file}: not equal by {where}: {verified}{wider}")
    say(f"equal within the bounds{' for fewer bits' if job.reduced else ''}: {verified}")
    say(f"speed: {verified.frame_ms:.1f} ms a call, frames of {meta.height}x{meta.width}")
    data = " ".join(str(meta.fit[key]) for key in ("data", "split") if meta.fit.get(key))
    fitted = f"temperature {meta.method.temperature:.3f}{f' of {data}' * bool(data)}"
    say(f"calibration: {fitted if meta.method.calibrated else 'none'}")
    say(f"licence: {meta.licence or 'not said'}")
    return 0


def open_step(job: VerifyJob, runtime: str, file: OnnxFile, pictures: np.ndarray) -> tuple[Step, str]:
    """Returns the file as a step in the library, and a text that names library and device."""
    meta = file.meta
    if runtime == "onnxruntime":
        graph = GraphStream(file.data, meta, job.device, {} if job.reduced else {"use_tf32": "0"})
        return graph_step(graph), f"{onnxruntime_name(meta.precision)} on {graph.device}"
    states = {
        one.name: np.zeros([size.dim_value for size in kind.shape.dim], element_type(kind.elem_type))
        for one in file.model.graph.input
        if one.name.startswith("state_") and (kind := one.type.tensor_type)
    }
    inputs = inputs_of(pictures, TURNS[0], meta) | states
    number = "bf16" if job.reduced else "fp32"
    run = openvino_runner(file.data, {name: value.shape for name, value in inputs.items()}, number)
    return CarriedState(run, states), f"{openvino_name(number)} on cpu"
