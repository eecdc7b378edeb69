"""Exported files from anywhere: a whole one of ours opens, everything else is refused with its cause."""

import dataclasses
import itertools
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper
from refusals import refusal

from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.method import Method
from steadyseg.export.file import onnx_file
from steadyseg.export.file.metadata import GraphMeta
from steadyseg.export.file.onnx_file import OnnxFile, check_onnx, read_bytes, read_onnx
from steadyseg.export.file.sessions import cpu_session, read_openvino
from steadyseg.export.write.traced import write_model

META = GraphMeta(
    kind="stream",
    classes=ClassList(("road", "car"), ((128, 64, 128), (64, 0, 128))),
    height=8,
    width=5,
    mean=(0.4, 0.4, 0.4),
    std=(0.3, 0.3, 0.3),
    method=Method("vq-dnn", tau=1.25, temperature=1.25),
    head_stride=2,
    precision="fp32",
    source="tiny",
    source_sha256="0" * 64,
    versions={"onnx": onnx.__version__},
    licence="CC0",
)
PLAIN = dataclasses.replace(META, method=Method("dnn", temperature=1.25))
LOGITS = dataclasses.replace(PLAIN, kind="logits")
STATES = {"state_00": [1, 2, 4, 3], "state_01": [1, 4, 3], "state_02": [1, 1]}
"""Probabilities, member entropies and mass at head_stride 2: 8 x 5 becomes 4 x 3."""
FLOAT, UINT8 = TensorProto.FLOAT, TensorProto.UINT8
Change = Callable[[ModelProto], object]
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def tensor(name: str, kind: int, shape: list[Any]) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(
    meta: GraphMeta, nodes: list[NodeProto], inputs: list[ValueInfoProto], outputs: list[ValueInfoProto]
) -> ModelProto:
    initializers = [
        helper.make_tensor("red", TensorProto.INT64, [], [0]),
        helper.make_tensor("half", FLOAT, [1], [0.5]),
        helper.make_tensor("none", FLOAT, [1, 2, 4, 3], [0.0] * 24),
    ]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    helper.set_model_props(model, meta.to_props())
    return model


def stream_model(meta: GraphMeta = META) -> ModelProto:
    """Copies the red channel into every map, and half of each state plus one half into the next."""
    nodes = [helper.make_node("Gather", ["frame", "red"], [key], axis=3) for key in MAPS]
    carried = STATES if meta.method.mode.startswith("vq") else {}
    for key in carried:
        nodes.append(helper.make_node("Mul", [f"{key}_in", "half"], [f"{key}_half"]))
        nodes.append(helper.make_node("Add", [f"{key}_half", "half"], [f"{key}_out"]))
    outputs = [tensor(f"{key}_out", FLOAT, shape) for key, shape in carried.items()]
    if not carried:
        nodes.append(helper.make_node("Identity", ["none"], ["probs"]))
        outputs = [tensor("probs", FLOAT, [1, 2, 4, 3])]
    inputs = [tensor("frame", UINT8, [1, "H", "W", 3]), tensor("gap", FLOAT, [1, 1]), tensor("reset", FLOAT, [1, 1])]
    inputs += [tensor(f"{key}_in", FLOAT, shape) for key, shape in carried.items()]
    return model_of(meta, nodes, inputs, [*(tensor(key, UINT8, [1, "H", "W"]) for key in MAPS), *outputs])


MAPS = ("label", "confidence", "entropy", "disagreement")


def logits_model(classes: int = 2) -> ModelProto:
    weights = helper.make_tensor("weights", FLOAT, [classes, 3, 1, 1], [0.1] * 3 * classes)
    model = model_of(
        LOGITS,
        [helper.make_node("Conv", ["image", "weights"], ["logits"])],
        [tensor("image", FLOAT, ["N", 3, "h", "w"])],
        [tensor("logits", FLOAT, ["N", classes, "h", "w"])],
    )
    model.graph.initializer.append(weights)
    return model


def written(folder: Path, model: ModelProto | bytes) -> Path:
    path = folder / "made.onnx"
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    return path


def check(path: Path) -> OnnxFile:
    """Reads a file as `read_onnx` does, in this process: a child for each of a thousand files takes too long."""
    return check_onnx(read_bytes(path), path)


def refused(path: Path) -> str:
    """Why this file is; the line names it."""
    message = refusal(check, path)
    assert str(path) in message and len(message) < len(str(path)) + 600
    return message.replace(str(path), "")


def refused_with_peak(path: Path) -> tuple[str, int]:
    """What a fresh process says, and the most memory it had, in kB: 70,000 with onnx and nothing else."""
    script = (
        "from pathlib import Path; from steadyseg.export.file.onnx_file import read_onnx\n"
        f"try: read_onnx(Path({str(path)!r}))\nexcept ValueError as error: print(error)\n"
        "print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    message, peak = done.stdout.splitlines()
    return message, int(peak)


def external(name: str = "w") -> TensorProto:
    """A tensor whose values lie in another file."""
    value = TensorProto(name=name, data_type=FLOAT, dims=[1], data_location=TensorProto.EXTERNAL)
    value.external_data.add(key="location", value="../../etc/passwd")
    return value


def test_a_stream_file_opens_and_its_bytes_run(tmp_path: Path) -> None:
    path = written(tmp_path, stream_model())
    file = read_onnx(path)
    assert (file.path, file.data, file.meta) == (path, path.read_bytes(), META)
    assert file.model == stream_model() and len(repr(file)) < 2000
    session = onnxruntime.InferenceSession(file.data, providers=["CPUExecutionProvider"])
    frame = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(1, 2, 3, 3)
    feed = {"frame": frame, "gap": np.ones((1, 1), np.float32), "reset": np.zeros((1, 1), np.float32)}
    feed |= {f"{key}_in": np.zeros(shape, np.float32) for key, shape in STATES.items()}
    label, *_, mass = session.run(["label", "state_02_out"], feed)
    assert (label == frame[..., 0]).all() and mass == 0.5


@pytest.mark.parametrize("model", [stream_model(PLAIN), logits_model()], ids=["without-state", "logits"])
def test_the_other_kinds_open(tmp_path: Path, model: ModelProto) -> None:
    assert read_onnx(written(tmp_path, model)).meta in (PLAIN, LOGITS)


def test_what_is_no_file(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "absent.onnx")
    assert "Is a directory" in refused(tmp_path)
    assert "name too long" in refused(tmp_path / ("a" * 300)).lower()
    assert "null byte" in refusal(read_onnx, tmp_path / "a\0b")
    pipe = tmp_path / "pipe.onnx"
    os.mkfifo(pipe)
    assert "no regular file" in refused(pipe)
    if sys.platform == "linux":
        assert "cannot be read" in refused(Path("/proc/self/mem"))


@linux
def test_a_file_over_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large.onnx"
    with path.open("wb") as file:
        file.truncate(onnx_file.MAX_BYTES + 1)
    message, peak = refused_with_peak(path)
    assert f"more than {onnx_file.MAX_BYTES} bytes" in message and peak < 200_000  # the file has 524,288 kB


def test_a_file_that_grows_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, stream_model())
    small = path.stat()
    monkeypatch.setattr(onnx_file, "MAX_BYTES", small.st_size)
    monkeypatch.setattr(os, "fstat", lambda descriptor: small)
    with path.open("ab") as file:
        file.write(b"more")
    assert f"more than {small.st_size} bytes" in refused(path)


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    data = stream_model().SerializeToString()
    for length in (*range(0, len(data) - 60, 31), *range(len(data) - 60, len(data))):
        message = refused(written(tmp_path, data[:length]))
        assert any(word in message for word in ("not a whole ONNX file", "not a whole SteadySeg export"))


def test_damaged_files_open_or_are_refused(tmp_path: Path) -> None:
    """No damage to single bytes ends in anything but a model or one line."""
    data = stream_model().SerializeToString()
    refused = 0
    for seed in range(200):
        generator, damaged = random.Random(seed), bytearray(data)
        for _ in range(generator.choice((1, 1, 1, 4))):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        path = written(tmp_path, bytes(damaged))
        try:
            check(path)
        except InputError as error:
            assert len(str(error).splitlines()) == 1 and str(path) in str(error)
            refused += 1
    assert 100 < refused < 200


@pytest.mark.parametrize("data", [b"<html>404</html>", b"version https://git-lfs.github.com", bytes(1000)], ids=str)
def test_files_of_other_kinds_are_refused(tmp_path: Path, data: bytes) -> None:
    assert "not a whole ONNX file" in refused(written(tmp_path, data))


@pytest.mark.slow
@linux
def test_a_small_file_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    """5 MiB of empty nodes take 380 MB, but not in the process that opens the file."""
    nodes = b"\x0a\x00" * (5 * 2**19)
    path = written(tmp_path, b"\x3a" + varint(len(nodes)) + nodes)
    message, peak = refused_with_peak(path)
    assert "no steadyseg_format" in message and peak < 200_000


def test_a_graph_that_ends_the_process_of_its_check_is_refused(tmp_path: Path) -> None:
    """onnx writes past a list where `batch_dims` is negative."""
    model = stream_model()
    model.graph.initializer.append(helper.make_tensor("indices", TensorProto.INT64, [1, 1], [0]))
    add_node(model, node("GatherND", "frame", "indices", batch_dims=-3))
    path = written(tmp_path, model)
    message, _ = refused_with_peak(path)
    assert message.startswith(f"{path}: its check ended by signal ")


def varint(number: int) -> bytes:
    digits = b""
    while number > 127:
        digits, number = digits + bytes([number & 127 | 128]), number >> 7
    return digits + bytes([number])


def sparse(values: TensorProto, indices: TensorProto) -> onnx.SparseTensorProto:
    return onnx.SparseTensorProto(values=values, indices=indices, dims=[4])


def subgraph(initializer: TensorProto) -> onnx.GraphProto:
    node = helper.make_node("Identity", [initializer.name], ["inner"])
    return helper.make_graph([node], "inner", [], [tensor("inner", FLOAT, [1])], [initializer])


def add_node(model: ModelProto, *nodes: NodeProto) -> None:
    model.graph.node.extend(nodes)


def branch(body: onnx.GraphProto) -> NodeProto:
    return helper.make_node("Identity", ["condition"], ["x"], then_branch=body, else_branch=body)


def set_type(values: Any, name: str, kind: int, shape: list[Any]) -> None:
    """Replaces the declared type of an input or output."""
    (value,) = (value for value in values if value.name == name)
    value.CopyFrom(tensor(name, kind, shape))


def swap(values: Any, one: int, other: int) -> None:
    order = list(values)
    order[one], order[other] = order[other], order[one]
    del values[:]
    values.extend(order)


def rename(values: Any, old: str, new: str) -> None:
    for value in values:
        if value.name == old:
            value.name = new


def constant(name: str, *values: int) -> TensorProto:
    return helper.make_tensor(name, TensorProto.INT64, [len(values)], values)


def node(operator: str, *inputs: str, makes: str = "made", **attributes: Any) -> NodeProto:
    return helper.make_node(operator, list(inputs), [makes], **attributes)


def doubled(times: int) -> list[NodeProto]:
    """half + half + half + ...: each step as long as all before."""
    names = ["half", *(f"joined_{number}" for number in range(times))]
    return [node("Concat", one, one, makes=other, axis=0) for one, other in itertools.pairwise(names)]


def weights(**fields: Any) -> Change:
    """A change that adds a tensor."""
    return lambda model: model.graph.initializer.append(TensorProto(**{"name": "w", "data_type": FLOAT} | fields))


def nodes(*added: NodeProto) -> Change:
    return lambda model: add_node(model, *added)


def typed(place: str, name: str, kind: int, shape: list[Any]) -> Change:
    return lambda model: set_type(getattr(model.graph, place), name, kind, shape)


def props(**changed: str) -> Change:
    return lambda model: helper.set_model_props(model, META.to_props() | changed)


def wide_states(model: ModelProto) -> None:
    for place, end in (("input", "in"), ("output", "out")):
        set_type(getattr(model.graph, place), f"state_01_{end}", FLOAT, [1, 2**40, 2**40])


# Every node is named Identity: operators that branch or repeat are refused by their name alone.
INDICES = helper.make_tensor("i", TensorProto.INT64, [1], [0])
BODY = helper.make_graph([branch(subgraph(external()))], "outer", [], [tensor("x", FLOAT, [1])])
EVIL = helper.make_graph([node("Run", "gap", domain="evil")], "inner", [], [tensor("made", FLOAT, [1])])
REAL, NO_RUN, KNOWN = "external data", "is not run here", onnx.defs.onnx_opset_version()
REFUSED: dict[str, tuple[str, Change]] = {
    "external weights": (REAL, lambda m: m.graph.initializer.append(external())),
    "external without location": (REAL, lambda m: m.graph.initializer[0].external_data.add(key="location", value="x")),
    "location without entry": (REAL, lambda m: setattr(m.graph.initializer[0], "data_location", TensorProto.EXTERNAL)),
    "external sparse": (REAL, lambda m: m.graph.sparse_initializer.append(sparse(external(), INDICES))),
    "external attribute": (REAL, nodes(helper.make_node("Identity", [], ["c"], values=[external()]))),
    "external in a body": (REAL, nodes(branch(BODY))),
    "external in a function": (
        REAL,
        lambda m: m.functions.append(
            helper.make_function("", "f", [], ["c"], [helper.make_node("Identity", [], ["c"], value=external())], [])
        ),
    ),
    "external in training": (REAL, lambda m: m.training_info.add().initialization.CopyFrom(subgraph(external()))),
    "operator of another domain": (f"'ai.onnx.ml' {NO_RUN}", nodes(node("Add", "gap", domain="ai.onnx.ml"))),
    "operator in a body": (f"'evil' {NO_RUN}", nodes(branch(EVIL))),
    "operator with a line break": (rf"'e\nvil' {NO_RUN}", nodes(node("Run", "gap", domain="e\nvil"))),
    "operator that repeats": (f"'Loop' {NO_RUN}", nodes(node("Loop", "gap"))),
    "size by pixels": (
        "Expand makes a tensor whose size depends on values",  # one frame in the child would say nothing of the next
        nodes(node("Cast", "gap", makes="i", to=TensorProto.INT64), node("Expand", "half", "i")),
    ),
    "weights NaN": ("'w' holds NaN or infinite", weights(dims=[2], float_data=[1.0, np.nan])),
    "weights infinite": ("'w' holds NaN or infinite", weights(data_type=16, dims=[1], int32_data=[0x7F80])),
    "weights too few": ("tensor 'w' is damaged", weights(dims=[2**20, 2**20], raw_data=bytes(8))),
    "attribute NaN": ("is NaN or infinite", nodes(node("LayerNormalization", "gap", "half", epsilon=float("nan")))),
    "attribute infinite": ("is NaN or infinite", nodes(node("Pad", "gap", pads=[1.0, float("inf")]))),
    "functions": (  # a function may take the name of a standard operator
        "functions",
        lambda m: m.functions.append(helper.make_function("", "Mul", ["a"], ["b"], [node("Identity", "a")], [])),
    ),
    "training": ("training", lambda m: m.training_info.add()),
    "newer opset": (
        f"opset {KNOWN + 1}, the installed onnx {onnx.__version__} reads up to {KNOWN};",
        lambda m: setattr(m.opset_import[0], "version", KNOWN + 1),
    ),
    "newer format": (
        f"IR version {onnx.IR_VERSION + 1}, the installed onnx {onnx.__version__} reads up to {onnx.IR_VERSION};",
        lambda m: setattr(m, "ir_version", onnx.IR_VERSION + 1),
    ),
    "malformed metadata": ("kind is 'heatmap'", props(kind="heatmap")),
    "no metadata": ("steadyseg_format", lambda m: m.ClearField("metadata_props")),
    "two entries": ("two entries 'mode'", lambda m: m.metadata_props.add(key="mode", value="bnn")),
    "no input": ("not a valid ONNX graph", nodes(node("Relu", "absent"))),
    "an output twice": ("not a valid ONNX graph", nodes(node("Relu", "gap", makes="label"))),
    "frame of floats": ("frame is float", typed("input", "frame", FLOAT, [1, "H", "W", 3])),
    "frame planar": ("frame is uint8 [1, 3,", typed("input", "frame", UINT8, [1, 3, "H", "W"])),
    "eight frames": ("frame is uint8 [8,", typed("input", "frame", UINT8, [8, "H", "W", 3])),
    "frame of negative size": ("frame is uint8 [1, -1,", typed("input", "frame", UINT8, [1, -1, "W", 3])),
    "frame with a line break": (r"a\nb", typed("input", "frame", UINT8, ["a\nb", "H", "W", 3])),
    "frame without shape": ("frame", lambda m: m.graph.input[0].type.tensor_type.ClearField("shape")),
    "frame of no type": ("frame is 99", typed("input", "frame", 99, [1, "H", "W", 3])),
    "gap as a list": ("gap is float [7]", typed("input", "gap", FLOAT, [7])),
    "reset as an image": ("reset is float", typed("input", "reset", FLOAT, [1, 3])),
    "inputs swapped": ("inputs are", lambda m: swap(m.graph.input, 1, 2)),
    "an input twice": ("inputs are", lambda m: m.graph.input.append(m.graph.input[0])),
    "label planar": ("label is uint8", typed("output", "label", UINT8, [1, 2, "H", "W"])),
    "maps swapped": ("outputs are", lambda m: swap(m.graph.output, 0, 2)),
    "state that changes": ("state_01_out", typed("output", "state_01_out", FLOAT, [1, 3, 4])),
    "state of many sizes": ("fixed sizes", typed("input", "state_01_in", FLOAT, [1] + [2**62] * 1000)),
    "state of free size": ("fixed sizes", typed("input", "state_01_in", FLOAT, [1, "h", 3])),
    "state of integers": ("state_02_in", typed("input", "state_02_in", TensorProto.INT64, [1, 1])),
    "states without end": ("at most 1073741824", wide_states),
    "states of no such mode": ("mode dnn", lambda m: helper.set_model_props(m, PLAIN.to_props())),
    "other classes": (
        "state_00_out is float [1, 2, 4, 3]",
        props(classes='["a", "b", "c"]', palette="[[0, 0, 0], [0, 0, 0], [0, 0, 0]]"),
    ),
    "other width": ("state_00_out is float [1, 2, 4, 3]", props(input_width="8")),
}
"""A change of a whole file, and what the line says."""
LOGITS_REFUSED: dict[str, tuple[str, Change]] = {
    "other classes": ("logits is float", typed("output", "logits", FLOAT, ["N", 3, "h", "w"])),
    "one colour": ("image is float", typed("input", "image", FLOAT, ["N", 1, "h", "w"])),
    "other input": ("inputs are", lambda m: rename(m.graph.input, "image", "picture")),
    "other output": ("outputs are", lambda m: rename(m.graph.output, "logits", "scores")),
}
TEXTS = {b"vq-dnn": b"vq-\xff\xfen", b"Gather": b"Gat\xff\xfer", b"state_00_in": b"state_\xff\xfe_in"}


@pytest.mark.parametrize("case", REFUSED)
def test_a_changed_file_is_refused_with_its_cause(tmp_path: Path, case: str) -> None:
    word, change = REFUSED[case]
    model = stream_model()
    change(model)
    assert word in refused(written(tmp_path, model))


@pytest.mark.parametrize("case", LOGITS_REFUSED)
def test_a_logits_graph_that_does_not_fit_is_refused(tmp_path: Path, case: str) -> None:
    word, change = LOGITS_REFUSED[case]
    model = logits_model()
    change(model)
    assert word in refused(written(tmp_path, model))


def test_bytes_that_onnx_does_not_know_are_refused(tmp_path: Path) -> None:
    """Texts that are no UTF-8, and a field of the future: another parser may know what it does."""
    data = stream_model().SerializeToString()
    for text, damaged in TEXTS.items():
        assert text in data and "utf-8" in refused(written(tmp_path, data.replace(text, damaged)))
    field = b"\xfa\x3f\x00"  # field 1023, empty
    assert "has fields that the installed onnx does not know" in refused(written(tmp_path, data + field))


BOMBS: dict[str, tuple[list[NodeProto], list[TensorProto]]] = {
    "constant": ([node("ConstantOfShape", "n")], [constant("n", 2**40)]),
    "grown-from-a-size": (
        [node("Shape", "frame", makes="s"), node("Mul", "s", "n", makes="t"), node("ConstantOfShape", "t")],
        [constant("n", 2**10)],
    ),
    "joined-to-itself": ([*doubled(40), node("Identity", "joined_39")], []),
    "kept-till-the-end": (
        [node("Expand", "gap", "n", makes=f"made_{number}") for number in range(20)]
        + [node("Concat", *(f"made_{number}" for number in range(20)), axis=0)],
        [constant("n", 2**28)],
    ),
}


@linux
@pytest.mark.slow
@pytest.mark.parametrize("case", BOMBS)
def test_a_graph_that_would_fill_the_memory_is_refused(tmp_path: Path, case: str) -> None:
    """The child that runs one frame has no memory for it; the process that opens the file never tries."""
    nodes, constants = BOMBS[case]
    model = stream_model()
    model.graph.initializer.extend(constants)
    mass = model.graph.node.pop()  # which gets the largest value of the bomb, so that no runtime leaves the bomb out
    add_node(model, *nodes, node("ReduceMax", "made", makes="most", keepdims=0), node("Cast", "most", makes="f", to=1))
    add_node(model, node("Add", mass.input[0], "f", makes=mass.output[0]))
    onnx.checker.check_model(model)  # to ONNX it is as good as any
    message, peak = refused_with_peak(written(tmp_path, model))
    assert "one frame" in message or "its check ended by" in message
    assert peak < 200_000


@pytest.mark.parametrize(("operator", "opens"), [("Add", True), ("Mul", False)])
def test_minus_infinity_is_a_mask_where_it_is_added(tmp_path: Path, operator: str, opens: bool) -> None:
    """Windows of attention that reach beyond the picture add such a mask."""
    model = stream_model()
    model.graph.initializer.append(helper.make_tensor("mask", FLOAT, [2], [0.0, -np.inf]))
    add_node(model, node(operator, "gap", "mask"))
    path = written(tmp_path, model)
    assert read_onnx(path).meta == META if opens else "'mask' holds NaN or infinite" in refused(path)


def test_nothing_is_written_that_would_not_open(tmp_path: Path) -> None:
    model = stream_model()
    write_model(model, tmp_path / "m.onnx")
    assert read_onnx(tmp_path / "m.onnx").meta == META
    model.graph.initializer[1].float_data[0] = np.nan
    assert "NaN" in refusal(write_model, model, tmp_path / "m.onnx", overwrite=True)
    assert read_onnx(tmp_path / "m.onnx").meta == META


def test_what_a_runtime_cannot_read_is_one_line(tmp_path: Path) -> None:
    """OpenVINO's own text has the word in it, and Python cannot decode that."""
    model = logits_model()
    model.graph.node[0].attribute.append(helper.make_attribute("auto_pad", b"SAME\xd5"))
    data = model.SerializeToString()  # nothing but a runtime says that the word must be a known one
    assert "OpenVINO cannot read the graph" in refusal(read_openvino, data)
    assert "cannot load the graph" in refusal(cpu_session, data)
    assert "cannot run one frame" in refusal(read_onnx, written(tmp_path, model))


def test_no_file_beside_the_model_is_opened(tmp_path: Path) -> None:
    """The operating system's own account of what a refused model opened."""
    model = stream_model()
    model.graph.initializer.append(external())
    path = written(tmp_path, model)
    watch = (
        "import sys; opened = []; sys.addaudithook(lambda e, a: opened.append(str(a[0])) if e == 'open' else None)\n"
        "from pathlib import Path; from steadyseg.export.file.onnx_file import read_onnx\n"
        f"try: read_onnx(Path({str(path)!r}))\nexcept ValueError: pass\n"
        f"print([*{{name for name in opened if name.startswith({str(tmp_path)!r}) or 'passwd' in name}}])"
    )
    done = subprocess.run([sys.executable, "-c", watch], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([str(path)])
