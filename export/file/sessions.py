"""Sessions of ONNX Runtime and OpenVINO, and graph files as functions of named arrays.

The device that computes is read from the session that was made, not from the build of the runtime.
"""

import contextlib
import functools
import importlib.util
import io
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.core.errors import InputError, first_line
from steadyseg.core.system.machine import available_cpus, require_device_name
from steadyseg.export.file.bf16_weights import round_to_bf16

Arrays = dict[str, np.ndarray]
Runner = Callable[[Arrays], Arrays]
PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
"""By device name. TensorRT is not offered: its libraries are in none of our extras, and it was never run."""
DEFAULTS = {"cudnn_conv_algo_search": "EXHAUSTIVE", "cudnn_conv_use_max_workspace": "1"}
"""Options of the CUDA provider. The search tries every convolution once for each shape, and a file has
fixed shapes."""


def require_runtime(backend: str, device: str) -> None:
    """Raises InputError for an unknown device, for torch, which runs no graph file, and for OpenVINO on a GPU."""
    require_device_name(device)
    if backend == "torch":
        raise InputError("a graph file is run by onnxruntime or openvino; give the checkpoint's name to use torch")
    if backend == "openvino" and device == "cuda":
        raise InputError(f"the OpenVINO backend runs on the CPU, got device {device}")


@contextlib.contextmanager
def runtime_errors(task: str) -> Iterator[None]:
    """Turns any exception of a runtime about a graph into an InputError; runtimes' errors have no common base but
    Exception. The message is `task`, then the first line of the runtime's message in brackets.
    """
    try:
        yield
    except Exception as error:
        raise InputError(f"{task} ({first_line(error)})") from error


def import_onnxruntime() -> Any:
    """Imports onnxruntime; InputError with the command that installs it."""
    try:
        import onnxruntime
    except ImportError as error:
        raise InputError("this needs onnxruntime: pip install '.[gpu]' in SteadySeg's clone") from error
    onnxruntime.set_default_logger_severity(4)  # we report a missing GPU, in one line
    return onnxruntime


def cpu_session(data: bytes) -> Any:
    """A session on the CPU with one worker per core that this process may use."""
    runtime = import_onnxruntime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = available_cpus()
    return _make(runtime, data, options, ["CPUExecutionProvider"])


def open_session(data: bytes, device: str, options: Mapping[str, str] | None = None) -> tuple[Any, str]:
    """(session, device that really computes). A device asked for by name and absent raises InputError; `auto` takes the
    GPU where one works and the CPU otherwise. `options`: options of CUDA's provider besides its defaults."""
    if device == "cpu":
        return cpu_session(data), "cpu"
    found = _cuda_session(data, options or {}, is_asked=device != "auto")
    if not isinstance(found, str):
        return found, "cuda"
    if device == "auto":
        return cpu_session(data), "cpu"
    raise InputError(
        f"device {device} was asked for, but ONNX Runtime cannot use {PROVIDERS[device]} here ({found}); "
        "use device cpu or auto"
    )


@functools.cache
def why_no_gpu() -> str:
    """The reason why ONNX Runtime computes nothing on a GPU here; empty if it can. A graph of one node is tried."""
    if importlib.util.find_spec("onnxruntime") is None:
        return "onnxruntime is not installed: pip install '.[gpu]' in SteadySeg's clone"
    import onnx

    value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    out = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Neg", ["x"], ["y"])], "probe", [value], [out])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=10)
    found = _cuda_session(model.SerializeToString(), {}, is_asked=False)
    return found if isinstance(found, str) else ""


def _cuda_session(data: bytes, options: Mapping[str, str], is_asked: bool) -> Any:
    """A session on the GPU, or the reason (str) why there is none. InputError for the runtime's own error if the GPU
    was asked for."""
    runtime, wanted = import_onnxruntime(), PROVIDERS["cuda"]
    if wanted not in runtime.get_available_providers():  # lists what the build could use, not what is there
        return "this build has no CUDA: pip install 'onnxruntime-gpu[cuda,cudnn]'"
    missing = _preload(runtime)
    try:
        session = _make(
            runtime, data, runtime.SessionOptions(), [(wanted, DEFAULTS | dict(options)), "CPUExecutionProvider"]
        )
    except InputError as error:
        if is_asked and not missing:
            raise
        return missing or str(error)
    if wanted in session.get_providers():
        return session
    return missing or "no such GPU or driver"


def _make(runtime: Any, data: bytes, options: Any, providers: list[Any]) -> Any:
    with runtime_errors(f"ONNX Runtime {runtime.__version__} cannot load the graph"):
        # Without a fallback: ONNX Runtime would print its error and go on with a session on the CPU.
        return runtime.InferenceSession(data, options, providers=providers, enable_fallback=0)


def _preload(runtime: Any) -> str:
    """Loads CUDA's libraries from their wheels, before the provider looks for them; returns what is missing, or "".

    ONNX Runtime prints each missing library to stdout, where our reports go, so its lines are read instead.
    """
    with contextlib.redirect_stdout(io.StringIO()) as said:
        runtime.preload_dlls()
    missing = re.findall(r"Failed to load (\S+?):", said.getvalue())
    names = ", ".join(dict.fromkeys(Path(one).name for one in missing))
    return f"{names} not found: pip install 'onnxruntime-gpu[cuda,cudnn]'" if names else ""


def read_openvino(data: bytes) -> Any:
    """An ONNX file's bytes as an OpenVINO model."""
    with runtime_errors("OpenVINO cannot read the graph"):
        return openvino_core().read_model(data)


def compile_openvino(model: Any, hint: str) -> Any:
    """Compiles an OpenVINO model for one request at a time; `hint`: f32 or bf16, the format of its arithmetic. For bf16
    the model's weights are rounded in place."""
    if hint == "bf16":
        round_to_bf16(model)
    properties = {
        "INFERENCE_PRECISION_HINT": hint,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": available_cpus(),
    }
    with runtime_errors("OpenVINO cannot compile the graph"):
        return openvino_core().compile_model(model, "CPU", properties)


@functools.cache
def openvino_core() -> Any:
    """The OpenVINO core of the process, kept for ever and without telemetry. OpenVINO gives the first thread that uses
    it a signal stack, and unmaps the stack with the last reference, in any thread. The first thread's next signal
    (Ctrl-C, the end of a child) would then kill the process with a segmentation fault (seen with 2026.4). The telemetry
    would report every conversion to Google Analytics. Its thread would fork ten processes for each, and these can hang
    on locks of other threads. Here its package cannot be imported, so OpenVINO uses a stand-in of its own.
    """
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    import openvino

    return openvino.Core()


def session_runner(model: Any) -> Runner:
    """Returns a function of named arrays that runs the model with ONNX Runtime on the CPU in full precision."""
    return runner_of(cpu_session(model.SerializeToString()))


def runner_of(session: Any) -> Runner:
    """Returns a session of ONNX Runtime as a function of named arrays."""
    names = [output.name for output in session.get_outputs()]
    wanted = {value.name for value in session.get_inputs()}

    def run(arrays: Arrays) -> Arrays:
        feed = {name: value for name, value in arrays.items() if name in wanted}
        return dict(zip(names, session.run(names, feed), strict=True))

    return run


def openvino_runner(data: bytes, shapes: Mapping[str, Sequence[int]] | None = None, precision: str = "fp32") -> Runner:
    """Returns a function of named arrays that runs an ONNX file's bytes with OpenVINO on the CPU.

    `shapes`: of inputs with free sizes; `precision`: fp32 or bf16.
    """
    model = read_openvino(data)
    if shapes:
        used = {name for one in model.inputs for name in one.names}
        model.reshape({name: list(shape) for name, shape in shapes.items() if name in used})
    compiled = compile_openvino(model, {"fp32": "f32", "bf16": "bf16"}[precision])
    wanted = {value.get_any_name() for value in compiled.inputs}

    def run(arrays: Arrays) -> Arrays:
        results = compiled({name: value for name, value in arrays.items() if name in wanted})
        return {name: np.asarray(results[output]) for output in compiled.outputs for name in output.get_names()}

    return run
