"""ONNX Runtime sessions: which processor really computes is asked of the made session, never of the build."""

import contextlib
import io
from typing import Any

from core.errors import InputError
from core.system.machine import available_cpus
from export.run.runtime_errors import runtime_errors

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider", "tensorrt": "TensorrtExecutionProvider"}
"""By device name; tensorrt is passed through and unverified."""


def import_onnxruntime() -> Any:
    """onnxruntime, or InputError with the command that brings it."""
    try:
        import onnxruntime
    except ImportError as error:
        raise InputError("this needs onnxruntime: pip install 'steadyseg[export]'") from error
    onnxruntime.set_default_logger_severity(4)  # a missing GPU is said by us, in one line
    return onnxruntime


def cpu_session(data: bytes, threads: int | None = None) -> Any:
    """A session on the CPU with one worker per core that this process may use."""
    runtime = import_onnxruntime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads or available_cpus()
    options.log_severity_level = 4
    return _make(runtime, data, options, ["CPUExecutionProvider"])


def open_session(data: bytes, device: str) -> tuple[Any, str]:
    """(session, device that really computes). A device asked for by name and absent raises InputError; `auto` takes the
    GPU where one works and the CPU otherwise."""
    if device == "cpu":
        return cpu_session(data), "cpu"
    runtime = import_onnxruntime()
    wanted = PROVIDERS["cuda" if device == "auto" else device]
    if wanted in runtime.get_available_providers():  # says what the build could use, not what is there
        _preload(runtime)
        options = runtime.SessionOptions()
        options.log_severity_level = 4
        session = _make(runtime, data, options, [wanted, "CPUExecutionProvider"])
        if wanted in session.get_providers():
            return session, "cuda" if device == "auto" else device
    if device == "auto":
        return cpu_session(data), "cpu"
    raise InputError(
        f"--device {device} was asked for, but ONNX Runtime cannot use {wanted} here (no such GPU, driver or library); "
        "use --device cpu or auto"
    )


def _make(runtime: Any, data: bytes, options: Any, providers: list[str]) -> Any:
    with runtime_errors(f"ONNX Runtime {runtime.__version__} cannot load the graph"):
        return runtime.InferenceSession(data, options, providers=providers)


def _preload(runtime: Any) -> None:
    """CUDA's libraries come with torch's wheels; they must be loaded before the provider looks for them.

    What is missing it prints on stdout, where reports go; that the CPU computes is said by us.
    """
    preload = getattr(runtime, "preload_dlls", None)
    if preload is not None:
        with contextlib.redirect_stdout(io.StringIO()):
            preload()
