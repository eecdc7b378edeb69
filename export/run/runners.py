"""Graph files as plain functions of named arrays, in full precision on the CPU: for proofs and for classifiers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from export.run.networks import compile_openvino
from export.run.sessions import cpu_session

Arrays = dict[str, np.ndarray]
Runner = Callable[[Arrays], Arrays]


def session_runner(model: Any) -> Runner:
    """ONNX Runtime on the CPU, in full precision, as name -> array."""
    session = cpu_session(model.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    wanted = {value.name for value in session.get_inputs()}

    def run(arrays: Arrays) -> Arrays:
        feed = {name: value for name, value in arrays.items() if name in wanted}
        return dict(zip(names, session.run(names, feed), strict=True))

    return run


def openvino_runner(data: bytes) -> Runner:
    """OpenVINO on the CPU, in full precision, as name -> array, of an ONNX file's bytes."""
    compiled = compile_openvino(data)
    wanted = {value.get_any_name() for value in compiled.inputs}

    def run(arrays: Arrays) -> Arrays:
        found = compiled({name: value for name, value in arrays.items() if name in wanted})
        return {output.get_any_name(): np.asarray(found[output]) for output in compiled.outputs}

    return run
