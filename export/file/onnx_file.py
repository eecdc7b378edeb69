"""Opens exported ONNX files of any origin; a file that could read other files, run other code or take all memory is
refused.

The checks in order: size of the file, parser, operators and references, metadata and signature, one frame. For a file
that this process did not write, all but the first run in a child with limits of memory and time.
The time of a frame is not limited, since a valid network may be arbitrarily long. Backends get bytes and never the
path, so that relative file names inside a model lead nowhere.
"""

from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from graphlib import CycleError
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steadyseg.core.errors import InputError, in_line
from steadyseg.core.system.files import read_small
from steadyseg.export.file.child import run_limited
from steadyseg.export.file.first_run import refuse_varying_sizes, run_once
from steadyseg.export.file.metadata import FORMAT_KEY, GraphMeta, from_props, require_format
from steadyseg.export.file.signature import check_signature
from steadyseg.export.file.subgraph import sort_nodes

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto

MAX_BYTES = 512 * 2**20
"""Limit on a file; the widest network here (31 million weights) is 124 MB in fp32."""

OPERATORS = set(
    (
        "Abs Add And ArgMax AveragePool BatchNormalization BitwiseXor Cast Clip Col2Im Concat ConstantOfShape Conv "
        "ConvTranspose Cos CumSum DequantizeLinear Div Einsum Equal Exp Expand Floor Gather GatherND Gelu Gemm Greater "
        "GreaterOrEqual GridSample HardSigmoid HardSwish Identity InstanceNormalization LSTM LayerNormalization "
        "LeakyRelu Less LessOrEqual Log LogSoftmax MatMul Max MaxPool Min Mod Mul Neg Not Pad Pow QuantizeLinear "
        "RandomUniformLike Range Reciprocal ReduceL2 ReduceMax ReduceMean ReduceSum Relu Reshape Resize Round "
        "ScatterElements Shape Sigmoid Sign Sin Slice Softmax Split Sqrt Squeeze Sub Tanh Tile TopK "
        "Transpose Unsqueeze "
        "Where"
    ).split()
)
"""Standard operators that the exporter writes, without loops and branches, and of no other domain."""
OPERATORS |= set(
    (
        "Ceil Celu DepthToSpace Elu Erf Flatten GatherElements GlobalAveragePool GlobalMaxPool GroupNormalization LRN "
        "LpNormalization LpPool Mean Mish Or PRelu ReduceL1 ReduceLogSumExp ReduceMin ReduceProd ReduceSumSquare "
        "ScatterND Selu Softplus Softsign SpaceToDepth Sum ThresholdedRelu Trilu Xor"
    ).split()
)
"""Operators of networks from elsewhere that `steadyseg wrap` puts into a file. Like the operators above they are
arithmetic or move values: none holds a graph, text or a file name, and sizes follow from sizes."""
MASKING = {"Add", "Pad", "Where"}
"""Operators that read attention masks and borders of pooling layers, which may be -infinity."""


@dataclass(frozen=True)
class OnnxFile:
    """An exported file that passed every check."""

    path: Path
    data: bytes = field(repr=False)
    """The whole file; backends get these bytes and never the path."""
    model: "ModelProto" = field(repr=False)
    meta: GraphMeta

    @property
    def props(self) -> dict[str, str]:
        """All entries of the metadata."""
        return _props(self.model, self.path)


def read_onnx(path: Path) -> OnnxFile:
    """Reads a file that `steadyseg export` or `wrap` wrote; everything else raises InputError in one line."""
    data = read_bytes(path)
    run_limited(accept, data, str(path))
    model = parse_whole(data, path)
    return OnnxFile(path, data, model, from_props(_props(model, path), str(path)))


def accept(data: bytes, name: str) -> bytes:
    """Checks a stranger's file and runs one frame, in the child."""
    file = check_onnx(data, Path(name))
    run_once(file.model, file.meta, name)
    return b""


def check_onnx(data: bytes, path: Path) -> OnnxFile:
    """Checks the bytes of a file that this process is about to write."""
    model = parse_whole(data, path)
    props = _props(model, path)
    require_format(props, str(path))
    refuse_unsafe(model, path)
    meta = from_props(props, str(path))
    check_signature(model.graph, meta, str(path))
    _check_structure(data, path)
    refuse_varying_sizes(model, str(path))
    return OnnxFile(path, data, model, meta)


def parse_foreign(data: bytes, path: Path, operators: Set[str]) -> "ModelProto":
    """Parses and checks the graph of another program, which may contain `operators` besides `OPERATORS`.

    InputError for a graph that could read other files, run other code or take all memory, and for `steadyseg` files.
    """
    model = parse_whole(data, path)
    if FORMAT_KEY in _props(model, path):
        raise InputError(f"{path}: is a file of steadyseg already; give it as it is: steadyseg video --model {path}")
    refuse_unsafe(model, path, operators)
    try:
        nodes = sort_nodes(list(model.graph.node))
    except CycleError:
        raise InputError(f"{path}: not a valid ONNX graph (its nodes need each other); export it again") from None
    if nodes != list(model.graph.node):  # ONNX Runtime sorts too; converters to fp16 append their casts
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        data = model.SerializeToString()
    _check_structure(data, path)
    return model


def _check_structure(data: bytes, path: Path) -> None:
    import onnx.checker

    try:
        onnx.checker.check_model(data)  # of the bytes, without shape inference, so its time grows with the file alone
    except (onnx.checker.ValidationError, ValueError) as error:
        raise InputError(f"{path}: not a valid ONNX graph ({in_line(error)[:200]}); export it again") from error


def read_bytes(path: Path) -> bytes:
    """Returns the bytes of a regular file of at most `MAX_BYTES`; InputError for anything else."""
    try:
        return read_small(path, MAX_BYTES)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read ({reason}); expected an ONNX file") from error


def parse_whole(data: bytes, path: Path) -> "ModelProto":
    """Parses a file whose graph may be anything; InputError for one that is damaged or of newer software."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model: ModelProto = onnx.load_model_from_string(data)
    except (ValueError, DecodeError) as error:
        raise InputError(f"{path}: not a whole ONNX file ({in_line(error)[:200]}); copy or export it again") from error
    size = model.ByteSize()
    model.DiscardUnknownFields()
    if model.ByteSize() != size:  # another parser may know what they do
        raise InputError(f"{path}: has fields that the installed onnx does not know; update onnx or export it again")
    if not model.HasField("graph") or not model.graph.node:
        raise InputError(f"{path}: not a whole ONNX file (it has no graph); copy or export it again")
    return model


def refuse_unsafe(model: "ModelProto", path: Path, operators: Set[str] = frozenset()) -> None:
    """Raises InputError for external data, NaN, functions, training graphs, text that is not UTF-8, operators outside
    `OPERATORS` and `operators`, and a newer format than the installed onnx reads."""
    from onnx import AttributeProto, NodeProto, TensorProto

    readers: dict[str, set[str]] = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, set()).add(node.op_type)
    for message in _messages(model):
        if not all(isinstance(text, str) for text in _texts(message)):  # protobuf returns bytes if it is not UTF-8
            raise InputError(f"{path}: not a whole ONNX file (a text is not utf-8); copy or export it again")
        if isinstance(message, TensorProto):
            _refuse_tensor(message, readers.get(message.name, set()), path)
        elif isinstance(message, AttributeProto) and not np.isfinite([message.f, *message.floats]).all():
            raise InputError(f"{path}: attribute {message.name[:80]!r} is NaN or infinite; export it again")
        elif isinstance(message, NodeProto):
            _refuse_operator(message, path, operators)
    for what, found in (
        ("functions of its own", model.functions),
        ("a training graph", model.training_info),
        ("sparse tensors", model.graph.sparse_initializer),
    ):
        if found:
            raise InputError(f"{path}: has {what}, which is not run here; export it again without")
    _refuse_newer(model, path)


def _refuse_tensor(tensor: "TensorProto", readers: set[str], path: Path) -> None:
    from onnx import numpy_helper

    shown = repr(tensor.name[:80])
    if tensor.external_data or tensor.data_location != tensor.DEFAULT:
        raise InputError(
            f"{path}: tensor {shown} is external data (kept in another file), which could name any file of this "
            f"machine; save the model as one file (torch.onnx.export: external_data=False)"
        )
    try:
        values = numpy_helper.to_array(tensor)
        finite = np.isfinite(values)
        if readers and readers <= MASKING:
            finite |= values == -np.inf
    except (ValueError, TypeError, KeyError) as error:  # another number of values than its sizes need, or no numbers
        raise InputError(f"{path}: tensor {shown} is damaged ({in_line(error)[:200]}); export it again") from error
    if not finite.all():
        raise InputError(f"{path}: tensor {shown} holds NaN or infinite values; export it again")


def _refuse_operator(node: "NodeProto", path: Path, operators: Set[str]) -> None:
    if node.domain or node.op_type not in OPERATORS | operators:
        where = f" of the custom domain {node.domain[:80]!r}" if node.domain else ""
        raise InputError(
            f"{path}: operator {node.op_type[:80]!r}{where} is not run here; only standard operators of networks are, "
            "without loops, branches and outputs whose size depends on values"
        )


def _messages(root: Any) -> Iterator[Any]:
    """Yields every message inside, also of subgraphs, attributes, functions and sparse tensors."""
    from google.protobuf.message import Message

    pending = [root]
    while pending:
        message = pending.pop()
        yield message
        for descriptor, value in message.ListFields():
            if descriptor.message_type is not None:
                pending.extend([value] if isinstance(value, Message) else value)


def _texts(message: Any) -> Iterator[str | bytes]:
    for descriptor, value in message.ListFields():
        if descriptor.type == descriptor.TYPE_STRING:
            yield from [value] if isinstance(value, str | bytes) else value


def _refuse_newer(model: "ModelProto", path: Path) -> None:
    """Raises InputError, with both versions, for a file of newer software than is installed."""
    import onnx

    opsets = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    if not opsets:
        raise InputError(f"{path}: names no opset version; not a whole ONNX file, copy or export it again")
    for what, found, limit in (
        ("opset", max(opsets), onnx.defs.onnx_opset_version()),
        ("IR version", model.ir_version, onnx.IR_VERSION),
    ):
        if found > limit:
            raise InputError(
                f"{path}: {what} {found}, the installed onnx {onnx.__version__} reads up to {limit}; update onnx and "
                "onnxruntime or export it again"
            )


def _props(model: "ModelProto", path: Path) -> dict[str, str]:
    props: dict[str, str] = {}
    for entry in model.metadata_props:
        if entry.key in props:  # some readers take the first entry, some the last
            raise InputError(f"{path}: two entries {entry.key[:80]!r} in its metadata; export it again")
        props[entry.key] = entry.value
    return props
