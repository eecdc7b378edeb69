"""Networks that are opened, first stepped and dropped in several threads; nobody outside holds a lock."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from made.waiting import PATIENCE_S

from steadyseg.core.frame import Frame
from steadyseg.core.method import MethodOptions
from steadyseg.core.segmenter import Segmenter
from steadyseg.runtime.open_model import open_segmenter

PICTURE = np.random.default_rng(0).integers(0, 255, (90, 120, 3), np.uint8).repeat(2, 0).repeat(2, 1)


def opened(backend: str, size: int) -> Segmenter:
    return open_segmenter("street-tiny", MethodOptions(mode="dnn"), backend=backend, precision="fp32", size=size)


def labels(segmenter: Segmenter) -> np.ndarray:
    segmenter.reset()
    return segmenter.step(Frame(PICTURE, 0, 0.0)).label


@pytest.mark.long
def test_models_are_first_stepped_in_threads_beside_others_that_run() -> None:
    """Two models are traced; meanwhile torch opens and runs a model over and over, and a compiled model goes on."""
    expected, compiled = labels(opened("torch", 160)), opened("openvino", 160)
    before = labels(compiled)
    traced: list[np.ndarray] = []
    wrong: list[object] = []

    def trace() -> None:
        traced.append(labels(opened("openvino", 96)))

    def run(step: Callable[[], np.ndarray], right: np.ndarray) -> Callable[[], None]:
        def repeat() -> None:
            while len(traced) < 2 and not wrong:
                if (step() != right).any():
                    wrong.append("other labels")
                time.sleep(0.03)  # the tracing threads want the interpreter too

        return repeat

    def caught(work: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                wrong.append(error)

        return run

    jobs = [trace, trace, run(lambda: labels(opened("torch", 160)), expected), run(lambda: labels(compiled), before)]
    threads = [threading.Thread(target=caught(job)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert (traced[0] == traced[1]).all() and (traced[0] == labels(opened("torch", 96))).mean() > 0.999


SCRIPT = """
import os, signal, subprocess, threading
import numpy as np, onnx
from steadyseg.runtime.networks import OpenVinoNetwork
from steadyseg.export.file.sessions import read_openvino

def image(name):
    return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 3, 8, 8])

node = onnx.helper.make_node("Relu", ["x"], ["y"])
graph = onnx.helper.make_graph([node], "small", [image("x")], [image("y")])
model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=10)
networks = [OpenVinoNetwork(read_openvino(model.SerializeToString()), "fp32")]
networks[0](np.ones((1, 3, 8, 8), np.float32))
thread = threading.Thread(target=networks.clear)
thread.start()
thread.join()
seen = []
for number in (signal.SIGCHLD, signal.SIGINT):
    signal.signal(number, lambda number, frame: seen.append(number))
subprocess.run(["true"], check=True)
os.kill(os.getpid(), signal.SIGINT)
print(sorted(seen) == sorted([signal.SIGCHLD, signal.SIGINT]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="signal stacks are OpenVINO's on Linux alone")
def test_signals_arrive_after_a_network_was_dropped_in_another_thread() -> None:
    """As on a page whose visitors have left."""
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=root, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
