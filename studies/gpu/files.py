"""Exported files on a GPU, and the proof that each carries."""

import contextlib
import io
from collections.abc import Mapping
from pathlib import Path

from steadyseg.app.cli import main as steadyseg
from steadyseg.core.errors import InputError
from steadyseg.export.file.onnx_file import read_onnx
from steadyseg.runtime.carried_proof import graph_step, read_proof, verify
from steadyseg.runtime.graph_executor import GraphStream
from steadyseg.studies.gpu.timing import Row

KINDS = {
    "fp32": ("--precision", "fp32"),
    "fp16": ("--precision", "fp16"),
    "vq-bnn": ("--mode", "vq-bnn"),
}
"""Flags of the export, by kind of file."""
PROOFS = {
    "proof in fp32": ("fp32", False),
    "proof in TF32": ("fp32", True),
    "proof of fp16": ("fp16", True),
    "proof of random draws": ("vq-bnn", True),
}
"""(kind of file, True for the bounds of reduced precision), by row; draws that repeat have no variance and fail."""
CUDA_PROOFS = {"proof in a CUDA graph": ("fp32", True, {"enable_cuda_graph": "1"})}
"""With options of the CUDA provider: rows of a GPU alone."""


def exported(model: str, kind: str, work: Path) -> Path:
    """The stateful graph file, made once, with its proof."""
    file = work / f"{model}-{kind}.onnx"
    if not file.exists():
        words = ["export", model, "-o", str(file), "--stateful", "--with-proof", "--motion", "off", *KINDS[kind]]
        with contextlib.redirect_stdout(io.StringIO()):
            code = steadyseg(words)
        if code:
            raise InputError(f"{model}: the export of {kind} ended with exit code {code}")
    return file


def proven(path: Path, device: str, reduced: bool, options: Mapping[str, str] | None = None) -> Row:
    """The differences to PyTorch on a CPU, and whether all are within their bounds."""
    file = read_onnx(path)
    proof = read_proof(file.props, file.meta, path.name)
    asked = ({} if reduced else {"use_tf32": "0"}) | dict(options or {})
    try:
        stream = GraphStream(file.data, file.meta, device, asked)
    except InputError as error:
        return {"absent": str(error)}
    result = verify(proof, file.meta, graph_step(stream), reduced=reduced)
    return {"device": stream.device, "holds": result.holds, **result.found, "call_ms": result.frame_ms}
