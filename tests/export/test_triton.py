"""The Triton repository without a server: parsed by Triton's own schema, held against the graph, and simulated.

The schema is `grpc/model_config_pb2.py` of the tritonclient wheel, loaded by its path: the package asks for an older
protobuf.
"""

import importlib.util
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf import text_format
from made.graphs import HEIGHT, WIDTH, Graphs, skip_tracing
from refusals import one_line_error

from app.cli import main
from core.frame import Frame
from core.segmenter import Segmenter
from export.file.onnx_file import read_onnx
from export.run.graph import GraphExecutor
from export.run.sessions import cpu_session
from export.write.triton import write_repository
from seg.street.drive import StreetSet

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


class Server:
    """What the documents say of sequences with implicit state, `oldest` strategy, one request at a time."""

    def __init__(self, schema: ModuleType, folder: Path) -> None:
        self._schema, self._config = schema, parsed(schema, (folder / "config.pbtxt").read_text())
        self._session = cpu_session((folder / "1" / self._config.default_model_filename).read_bytes())
        self._states: dict[int, dict[str, np.ndarray]] = {}

    def infer(self, sequence: int, inputs: dict[str, np.ndarray], start: bool, end: bool) -> dict[str, np.ndarray]:
        batching = self._config.sequence_batching
        assert sequence != 0 and set(inputs) == {one.name for one in self._config.input}
        for one in self._config.input:
            value = inputs[one.name]
            assert value.dtype == NUMPY[kind(self._schema, one.data_type)]
            assert len(value.shape) == len(one.dims)
            assert all(size in (-1, real) for size, real in zip(one.dims, value.shape, strict=True))
        if start:
            self._states[sequence] = {one.input_name: self._initial(one) for one in batching.state}
        elif sequence not in self._states:
            raise LookupError("a sequence must begin with sequence_start")
        elif len(self._states) > batching.oldest.max_candidate_sequences:
            raise LookupError("no place")
        false, true = batching.control_input[0].control[0].fp32_false_true
        control = {batching.control_input[0].name: np.array([true if start else false], np.float32)}
        wanted = [one.name for one in self._config.output]
        carried = {one.output_name: one.input_name for one in batching.state}
        found = self._session.run([*wanted, *carried], inputs | control | self._states[sequence])
        outputs = dict(zip([*wanted, *carried], found, strict=True))
        self._states[sequence] = {entering: outputs[leaving] for leaving, entering in carried.items()}
        if end:
            del self._states[sequence]
        return {name: outputs[name] for name in wanted}

    def _initial(self, state: Any) -> np.ndarray:
        (initial,) = state.initial_state
        assert initial.name and initial.zero_data and list(initial.dims) == list(state.dims)
        return np.zeros(initial.dims, NUMPY[kind(self._schema, initial.data_type)])


@pytest.fixture(scope="module")
def repository(graphs: Graphs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the model `served`."""
    folder = tmp_path_factory.mktemp("triton") / "served"
    write_repository(folder, onnx.load(graphs("vq-dnn")))
    return folder


@pytest.mark.slow
def test_the_config_says_what_the_graph_is(schema: ModuleType, repository: Path) -> None:
    text = (repository / "config.pbtxt").read_text()
    config, graph = parsed(schema, text), onnx.load(repository / "1" / "model.onnx").graph
    assert (config.name, config.backend, config.max_batch_size) == ("served", "onnxruntime", 0)
    said = [(one.name, one.data_type, list(one.dims)) for one in (*config.input, *config.output)]
    for state in config.sequence_batching.state:
        said += [(name, state.data_type, list(state.dims)) for name in (state.input_name, state.output_name)]
    (control,) = config.sequence_batching.control_input
    said.append((control.name, schema.TYPE_FP32, [1]))  # what Triton makes of a control where max_batch_size is 0
    found = {value.name: value.type.tensor_type for value in (*graph.input, *graph.output)}
    assert sorted(name for name, *_ in said) == sorted(found)
    for name, data_type, dims in said:
        assert ONNX[kind(schema, data_type)] == found[name].elem_type, name
        assert dims == [size.dim_value if size.HasField("dim_value") else -1 for size in found[name].shape.dim], name
    assert control.control[0].kind == schema.ModelSequenceBatching.Control.CONTROL_SEQUENCE_START
    without_marks = "\n".join(line.removeprefix("# ") for line in text.splitlines() if "without the marks" not in line)
    accelerators = parsed(schema, without_marks).optimization.execution_accelerators
    assert accelerators.gpu_execution_accelerator[0].name == "tensorrt"


@pytest.mark.slow
def test_two_interleaved_sequences_are_two_segmenters(schema: ModuleType, repository: Path) -> None:
    server, model = Server(schema, repository), repository / "1" / "model.onnx"
    streets = {7: StreetSet(6, HEIGHT, WIDTH, first_seed=3), 9: StreetSet(6, HEIGHT, WIDTH, first_seed=40)}
    file = read_onnx(model)
    alone = {key: Segmenter(GraphExecutor(file.data, file.meta, "cpu")) for key in streets}
    gap = np.ones(1, np.float32)
    for number in range(6):
        for key, street in streets.items():
            start = number == 0 or (key == 9 and number == 3)  # one of them starts anew in the middle
            image = street[number][0]
            maps = alone[key].step(Frame(image, number, number / 25, discontinuity=start))
            found = server.infer(key, {"frame": image[None], "gap": gap}, start, end=number == 5)
            for name in ("label", "confidence", "entropy", "disagreement"):
                assert np.array_equal(found[name][0], getattr(maps, name)), (key, number, name)
    with pytest.raises(LookupError):
        server.infer(7, {"frame": streets[7][0][0][None], "gap": gap}, start=False, end=False)


@pytest.mark.slow
def test_export_writes_a_model_into_a_repository(
    graphs: Graphs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    skip_tracing(monkeypatch, graphs("vq-dnn"))
    folder = tmp_path / "served" / "tiny"
    command = ["export", "street-tiny", "--target", "triton", "-o", folder]
    command += ["--size", HEIGHT]
    assert main([str(word) for word in command]) == 0
    assert read_onnx(folder / "1" / "model.onnx").meta.method.mode == "vq-dnn"
    assert 'client.infer("tiny"' in (folder / "README.md").read_text()
    assert "where video computes vq-dnn, tau 8, motion: --motion on" in capsys.readouterr().err
    assert f"{folder}: exists already" in one_line_error(capsys, *command)


def test_what_has_no_memory_or_no_name_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    for flags, name, said in (
        (["--mode", "dnn"], "m", "needs a state"),
        ([], "a name", "is no name"),
        ([], "file/m", "is a file"),
    ):
        command = ["export", "street-tiny", *flags, "--target", "triton", "-o", tmp_path / name]
        assert said in one_line_error(capsys, *command)
    command = ["export", "cifar10-resnet18-plain", "--target", "triton", "-o", tmp_path / "m"]
    assert "--target triton is for segmentation networks" in one_line_error(capsys, *command)
