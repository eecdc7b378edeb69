"""The Triton repository without a server: parsed by Triton's own schema, held against the graph, and simulated.

The schema is `grpc/model_config_pb2.py` of the tritonclient wheel, loaded by its path: the package asks for an older
protobuf.
"""

import importlib.util
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType
from typing import Any

import cv2
import numpy as np
import onnx
import pytest
from google.protobuf import text_format
from made.graphs import HEIGHT, WIDTH, Graphs, skip_tracing
from made.methods import opened
from made.waiting import PATIENCE_S
from refusals import one_line_error

from steadyseg.app.cli import main
from steadyseg.core.frame import Frame
from steadyseg.core.segmenter import Segmenter
from steadyseg.export.file.onnx_file import read_onnx
from steadyseg.export.run.graph import GraphExecutor
from steadyseg.export.run.sessions import cpu_session, session_runner
from steadyseg.export.write.triton import write_repository
from steadyseg.seg.street.drive import Street

PROJECT = Path(__file__).parents[2]
NUMPY = {"TYPE_UINT8": np.uint8, "TYPE_FP32": np.float32, "TYPE_FP16": np.float16}
ONNX = {
    "TYPE_UINT8": onnx.TensorProto.UINT8,
    "TYPE_FP32": onnx.TensorProto.FLOAT,
    "TYPE_FP16": onnx.TensorProto.FLOAT16,
}


@pytest.fixture(scope="module")
def schema() -> ModuleType:
    """Triton's own, as generated Python."""
    try:
        files = distribution("tritonclient").files or []
    except PackageNotFoundError:
        pytest.skip("tritonclient, which carries Triton's schema, is not installed")
    path = next(file.locate() for file in files if file.match("tritonclient/grpc/model_config_pb2.py"))
    spec = importlib.util.spec_from_file_location("model_config_pb2", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parsed(schema: ModuleType, text: str) -> Any:
    return text_format.Parse(text, schema.ModelConfig())


def kind(schema: ModuleType, number: int) -> str:
    return str(schema.DataType.Name(number))


@dataclass
class Request:
    """A frame of a sequence: batch 1, as Triton's sequence batcher demands."""

    sequence: int
    inputs: dict[str, np.ndarray]
    start: bool = False
    end: bool = False


class Server:
    """What the documents and the code say of batched sequences with implicit state and strategy `oldest`."""

    def __init__(self, schema: ModuleType, folder: Path) -> None:
        self._schema, self._config = schema, parsed(schema, (folder / "config.pbtxt").read_text())
        self._session = cpu_session((folder / "1" / self._config.default_model_filename).read_bytes())
        self._states: dict[int, dict[str, np.ndarray]] = {}

    def infer(self, *requests: Request) -> list[dict[str, np.ndarray]]:
        """One batch."""
        batching = self._config.sequence_batching
        assert len(requests) <= self._config.max_batch_size
        given = []
        for request in requests:
            assert request.sequence != 0 and set(request.inputs) == {one.name for one in self._config.input}
            for one in self._config.input:
                value = request.inputs[one.name]
                assert value.dtype == NUMPY[kind(self._schema, one.data_type)]
                assert len(value.shape) == 1 + len(one.dims) and len(value) == 1
                assert all(size in (-1, real) for size, real in zip(one.dims, value.shape[1:], strict=True))
            if request.start:
                self._states[request.sequence] = {one.input_name: self._initial(one) for one in batching.state}
            elif request.sequence not in self._states:
                raise LookupError("a sequence must begin with sequence_start")
            elif len(self._states) > batching.oldest.max_candidate_sequences:
                raise LookupError("no place")
            false, true = batching.control_input[0].control[0].fp32_false_true
            control = np.array([[true if request.start else false]], np.float32)  # [1, 1] where the model batches
            given.append({**request.inputs, batching.control_input[0].name: control, **self._states[request.sequence]})
        wanted = [one.name for one in self._config.output]
        carried = {one.output_name: one.input_name for one in batching.state}
        batch = {name: np.concatenate([one[name] for one in given]) for name in given[0]}
        found = dict(zip([*wanted, *carried], self._session.run([*wanted, *carried], batch), strict=True))
        for place, request in enumerate(requests):
            self._states[request.sequence] = {
                entering: found[leaving][place, None] for leaving, entering in carried.items()
            }
            if request.end:
                del self._states[request.sequence]
        return [{name: found[name][place, None] for name in wanted} for place in range(len(requests))]

    def _initial(self, state: Any) -> np.ndarray:
        (initial,) = state.initial_state
        assert initial.name and initial.zero_data and list(initial.dims) == list(state.dims)
        return np.zeros((1, *initial.dims), NUMPY[kind(self._schema, initial.data_type)])


@pytest.fixture(scope="module")
def repository(graphs: Graphs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the model `served`."""
    folder = tmp_path_factory.mktemp("triton") / "served"
    write_repository(folder, onnx.load(graphs("streams")))
    return folder


@pytest.mark.slow
def test_the_config_says_what_the_graph_is(schema: ModuleType, repository: Path) -> None:
    text = (repository / "config.pbtxt").read_text()
    config, graph = parsed(schema, text), onnx.load(repository / "1" / "model.onnx").graph
    assert (config.name, config.backend, config.max_batch_size) == ("served", "onnxruntime", 8)
    said = [(one.name, one.data_type, list(one.dims)) for one in (*config.input, *config.output)]
    for state in config.sequence_batching.state:
        said += [(name, state.data_type, list(state.dims)) for name in (state.input_name, state.output_name)]
    (control,) = config.sequence_batching.control_input
    said.append((control.name, schema.TYPE_FP32, [1]))  # what Triton makes of a control, beside the batch
    found = {value.name: value.type.tensor_type for value in (*graph.input, *graph.output)}
    assert sorted(name for name, *_ in said) == sorted(found)
    for name, data_type, dims in said:
        assert ONNX[kind(schema, data_type)] == found[name].elem_type, name
        batch, *sizes = found[name].shape.dim
        assert batch.dim_param == "streams", name
        assert dims and dims == [size.dim_value if size.HasField("dim_value") else -1 for size in sizes], name
    assert control.control[0].kind == schema.ModelSequenceBatching.Control.CONTROL_SEQUENCE_START
    without_marks = "\n".join(line.removeprefix("# ") for line in text.splitlines() if "without the marks" not in line)
    accelerators = parsed(schema, without_marks).optimization.execution_accelerators
    assert accelerators.gpu_execution_accelerator[0].name == "tensorrt"


@pytest.mark.slow
def test_sequences_that_share_batches_are_segmenters_of_their_own(schema: ModuleType, repository: Path) -> None:
    server, file = Server(schema, repository), read_onnx(repository / "1" / "model.onnx")
    streets = {key: list(Street(seed=key, height=HEIGHT, width=WIDTH).frames(6)) for key in (7, 9, 12)}
    alone = {key: Segmenter(GraphExecutor(file.data, file.meta, "cpu")) for key in streets}
    index = dict.fromkeys(streets, -1)
    calls = [[7], [9, 7], [12, 7, 9], [7, 12], [9, 7, 12], [9]]  # 12 comes late, 9 pauses, and 7 leaves before it
    for number, keys in enumerate(calls):
        requests = []
        for key in keys:
            start = index[key] < 0 or (key == 9 and number == 4)  # one of them starts anew
            gap = 2 if key == 7 and number == 4 else 1
            index[key] += gap
            inputs = {"frame": streets[key][number].image[None], "gap": np.full((1, 1), gap, np.float32)}
            requests.append(Request(key, inputs, start, end=key == 7 and number == 4))
        for key, request, found in zip(keys, requests, server.infer(*requests), strict=True):
            frame = Frame(request.inputs["frame"][0], index[key], index[key] / 25, discontinuity=request.start)
            maps = alone[key].step(frame)
            for name in ("label", "confidence", "entropy", "disagreement"):
                apart = np.abs(found[name][0].astype(int) - getattr(maps, name))
                assert apart.max() <= 1 if name != "label" else (apart > 0).mean() < 1e-3, (key, number, name)
    with pytest.raises(LookupError):
        server.infer(Request(7, requests[0].inputs))


@pytest.mark.slow
def test_a_graph_of_one_stream_gets_the_control_of_a_server_without_batches(
    schema: ModuleType, graphs: Graphs, tmp_path: Path
) -> None:
    write_repository(tmp_path / "one", onnx.load(graphs("vq-dnn")))
    config = parsed(schema, (tmp_path / "one" / "config.pbtxt").read_text())
    dims = {one.name: list(one.dims) for one in config.input}
    assert config.max_batch_size == 0 and dims == {"frame": [1, -1, -1, 3], "gap": [1, 1]}
    rng = np.random.default_rng(0)
    feed = {"frame": rng.integers(0, 256, (1, HEIGHT, WIDTH, 3), np.uint8), "gap": np.ones((1, 1), np.float32)}
    for state in config.sequence_batching.state:
        feed[state.input_name] = rng.random(state.dims, np.float32)
    original, served = (
        session_runner(onnx.load(path)) for path in (graphs("vq-dnn"), tmp_path / "one" / "1" / "model.onnx")
    )
    for reset in (0, 1):
        expected = original(feed | {"reset": np.full((1, 1), reset, np.float32)})
        found = served(feed | {"reset": np.full(1, reset, np.float32)})
        assert all(np.array_equal(found[name], expected[name]) for name in expected)


@pytest.mark.slow
def test_export_writes_a_model_into_a_repository(
    graphs: Graphs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    skip_tracing(monkeypatch, graphs("streams"))
    folder = tmp_path / "served" / "tiny"
    command = ["export", "street-tiny", "--target", "triton", "-o", folder]
    command += ["--size", HEIGHT]
    assert main([str(word) for word in command]) == 0
    assert read_onnx(folder / "1" / "model.onnx").meta.method.mode == "vq-dnn"
    assert 'client.infer("tiny"' in (folder / "README.md").read_text()
    assert "where video computes vq-dnn, tau 8, motion: --motion on" in capsys.readouterr().err
    assert f"{folder}: exists already" in one_line_error(capsys, *command)


class Wire:
    """`Server` behind the protocol of real ones (KServe version 2, gRPC), by the service of NVIDIA's client library.

    The messages of a stub are those that real clients send; a wrong name, type or flag in them fails.
    """

    def __init__(self, server: Server, graph: Any) -> None:
        self._server, self._lock, self.flags = server, threading.Lock(), []
        self._inputs = [one for one in graph.input if not one.name.startswith("state_") and one.name != "reset"]

    def ModelMetadata(self, request: Any, context: object) -> Any:  # noqa: N802 (the protocol's name)
        from tritonclient.grpc import service_pb2

        found = service_pb2.ModelMetadataResponse(name=request.name)
        for one in self._inputs:
            sizes = [size.dim_value or -1 for size in one.type.tensor_type.shape.dim]
            found.inputs.add(name=one.name, shape=sizes)
        return found

    def ModelInfer(self, request: Any, context: object) -> Any:  # noqa: N802
        from tritonclient.grpc import service_pb2

        kinds = {"UINT8": np.uint8, "FP32": np.float32}
        given = {
            one.name: np.frombuffer(data, kinds[one.datatype]).reshape(tuple(one.shape))
            for one, data in zip(request.inputs, request.raw_input_contents, strict=True)
        }
        flags = request.parameters
        start, end = flags["sequence_start"].bool_param, flags["sequence_end"].bool_param
        with self._lock:
            self.flags.append((flags["sequence_id"].int64_param, start, end))
            (outputs,) = self._server.infer(Request(flags["sequence_id"].int64_param, given, start, end))
        found = service_pb2.ModelInferResponse(model_name=request.model_name)
        names = {np.dtype(np.uint8): "UINT8", np.dtype(np.float32): "FP32"}
        for name, value in outputs.items():
            found.outputs.add(name=name, datatype=names[value.dtype], shape=value.shape)
            found.raw_output_contents.append(value.tobytes())
        return found


@pytest.mark.slow
def test_the_client_speaks_the_protocol(schema: ModuleType, repository: Path, tmp_path: Path) -> None:
    """Two videos at once, each a sequence of its own from its first frame to its last."""
    grpc = pytest.importorskip("grpc")
    from tritonclient.grpc import service_pb2_grpc

    expected = []
    for seed in (3, 4):
        (tmp_path / str(seed)).mkdir()
        segmenter = opened(repository / "1" / "model.onnx", executor="onnxruntime", precision="fp32", device="cpu")
        for number, frame in enumerate(Street(seed=seed, height=HEIGHT, width=WIDTH).frames(4)):
            cv2.imwrite(str(tmp_path / str(seed) / f"{number:05}.png"), frame.image[..., ::-1])
            expected.append(f"{np.bincount(segmenter.step(frame).label.ravel()).max() / (HEIGHT * WIDTH):.0%}")
    wire = Wire(Server(schema, repository), onnx.load(repository / "1" / "model.onnx").graph)
    server = grpc.server(ThreadPoolExecutor(4))
    service = type("Service", (service_pb2_grpc.GRPCInferenceServiceServicer,), {})()
    service.ModelMetadata, service.ModelInfer = wire.ModelMetadata, wire.ModelInfer
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        sources = [str(tmp_path / str(seed) / "%05d.png") for seed in (3, 4)]
        client = PROJECT / "deploy" / "clients" / "triton" / "triton_client.py"
        command = [sys.executable, str(client), f"127.0.0.1:{port}", "served", *sources]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    finally:
        server.stop(None)
    assert done.returncode == 0, done.stderr
    shares = [re.search(r" (\d+): class \d+ (\d+%)", line) for line in sorted(done.stdout.splitlines())]
    assert [found[2] for found in shares if found] == expected
    for sequence in (1, 2):
        flags = [(start, end) for which, start, end in wire.flags if which == sequence]
        assert flags == [(True, False), (False, False), (False, False), (False, True)]


def test_what_has_no_memory_or_no_name_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    for flags, name, said in (
        (["--mode", "dnn"], "m", "needs a state"),
        ([], "a name", "is no name"),
        ([], "file/m", "is a file"),
        (["--streams", "4"], "m", "fills each batch"),
    ):
        command = ["export", "street-tiny", *flags, "--target", "triton", "-o", tmp_path / name]
        assert said in one_line_error(capsys, *command)
    command = ["export", "cifar10-resnet18-plain", "--target", "triton", "-o", tmp_path / "m"]
    assert "--target triton is for segmentation networks" in one_line_error(capsys, *command)
