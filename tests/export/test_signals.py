"""A process that dropped its networks in another thread still gets its signals, as a page whose visitors have left
does."""

import subprocess
import sys
from pathlib import Path

import pytest
from made.waiting import PATIENCE_S

pytest.importorskip("openvino")
SCRIPT = """
import os, signal, subprocess, threading
import numpy as np, onnx
from steadyseg.export.run.networks import OpenVinoNetwork
from steadyseg.export.run.sessions import read_openvino

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
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=root, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
