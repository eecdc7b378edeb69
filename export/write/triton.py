"""A model repository for NVIDIA's Triton Inference Server: it keeps the state of every stream, ONNX Runtime computes.

The server's behaviour was read in its documents and code (docs/user_guide/implicit_state_management.md, core's
sequence_batch_scheduler.cc and backend_model_instance.cc); no server was run. tests/export/test_triton.py simulates
one.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from steadyseg.core.errors import InputError, refuse_existing
from steadyseg.core.system.files import write_atomic
from steadyseg.export.file.signature import type_and_shape

if TYPE_CHECKING:
    import onnx

TYPES = {"UINT8": "TYPE_UINT8", "FLOAT": "TYPE_FP32", "FLOAT16": "TYPE_FP16"}
"""ONNX's names -> Triton's."""
BATCH = 8
"""Largest batch: a frame of each of so many streams. Memory grows with it; config.pbtxt may be edited."""
CANDIDATES = 64
"""Sequences at once for an instance, each with a state (camvid-unet-s at 360x480: 8 MB); later ones wait for an end."""
IDLE_US = 60_000_000
"""After a minute without a frame a sequence is over, so that a client that vanished holds no place."""


def check_place(folder: Path, overwrite: bool) -> None:
    """Raises InputError, before any work, where REPOSITORY/NAME cannot be written."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", folder.name):
        raise InputError(
            f"-o {folder}: Triton's model is called like the folder, and {folder.name!r} is no name; use letters, "
            "digits, _ . -"
        )
    if folder.parent.exists() and not folder.parent.is_dir():
        raise InputError(f"-o {folder}: {folder.parent} is a file; give REPOSITORY/NAME")
    refuse_existing(folder, overwrite)


def write_repository(folder: Path, model: "onnx.ModelProto") -> None:
    """Writes REPOSITORY/NAME with the graph as version 1, config.pbtxt and README.md.

    InputError for a graph without state, or a place that cannot be written to.
    """
    model = model if batches(model.graph) else with_plain_reset(model)
    text = config_text(folder.name, model.graph)
    try:
        (folder / "1").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"-o {folder}: cannot be written to ({error.strerror})") from error
    write_atomic(folder / "1" / "model.onnx", model.SerializeToString())
    write_atomic(folder / "README.md", README.replace("NAME", folder.name).encode())
    write_atomic(folder / "config.pbtxt", text.encode())  # last: a server finds a model by it


def config_text(name: str, graph: "onnx.GraphProto") -> str:
    """The model's config.pbtxt. Where the graph takes any number of streams, Triton fills a batch with those that have
    a frame, on the first axis of all tensors, and a stream's state goes with it."""
    skipped = 1 if batches(graph) else 0
    inputs, outputs = ({one.name: _typed(one, skipped) for one in values} for values in (graph.input, graph.output))
    states = [key for key in inputs if key.startswith("state_")]
    if not states:
        raise InputError("--target triton serves streams, so the graph needs a state; use --mode vq-dnn or vq-bnn")
    carried = [key.removesuffix("_in") + "_out" for key in states]
    asked = [key for key in inputs if key not in (*states, "reset")]
    given = [key for key in outputs if key not in carried]
    return "\n".join(
        [
            f'name: "{name}"',
            'backend: "onnxruntime"',
            'default_model_filename: "model.onnx"',
            f"max_batch_size: {BATCH * skipped}",
            *_list("input", ([f'name: "{key}"', *inputs[key]] for key in asked)),
            *_list("output", ([f'name: "{key}"', *outputs[key]] for key in given)),
            *_block(
                "sequence_batching",
                [
                    f"max_sequence_idle_microseconds: {IDLE_US}",
                    *_block("oldest", [f"max_candidate_sequences: {CANDIDATES}"]),
                    *_list(
                        "control_input",
                        [
                            [
                                'name: "reset"',
                                *_list("control", [["kind: CONTROL_SEQUENCE_START", "fp32_false_true: [ 0, 1 ]"]]),
                            ]
                        ],
                    ),
                    *_list("state", (_state(*pair, inputs[pair[0]]) for pair in zip(states, carried, strict=True))),
                ],
            ),
            *TENSORRT,
            "",
        ]
    )


def batches(graph: "onnx.GraphProto") -> bool:
    """True if the graph takes any number of streams."""
    return not isinstance(type_and_shape(graph.input[0], "graph")[1][0], int)


def with_plain_reset(model: "onnx.ModelProto") -> "onnx.ModelProto":
    """Returns a copy for one stream a call whose `reset` is (1,), the shape of Triton's controls where it does not
    batch; with batches they are (B, 1)."""
    import onnx

    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph, helper = changed.graph, onnx.helper
    for node in graph.node:
        node.input[:] = ["reset_column" if name == "reset" else name for name in node.input]
    graph.node.insert(0, helper.make_node("Unsqueeze", ["reset", "reset_axis"], ["reset_column"]))
    graph.initializer.append(helper.make_tensor("reset_axis", onnx.TensorProto.INT64, [1], [1]))
    for value in graph.input:
        if value.name == "reset":
            value.CopyFrom(helper.make_tensor_value_info("reset", onnx.TensorProto.FLOAT, [1]))
    return changed


def _state(entering: str, leaving: str, kind: Sequence[str]) -> list[str]:
    """Text of one state; its initial state is zeros, since a sequence would else begin with random memory."""
    start = [f'name: "{entering}_zero"', *kind, "zero_data: true"]
    names = [f'input_name: "{entering}"', f'output_name: "{leaving}"']
    return [*names, *kind, *_list("initial_state", [start])]


def _typed(value: "onnx.ValueInfoProto", skipped: int) -> list[str]:
    """Lines of data type and dimensions, without the first `skipped` ones; free sizes are -1."""
    name, shape = type_and_shape(value, "graph")
    sizes = ", ".join(str(size) if isinstance(size, int) else "-1" for size in shape[skipped:])
    return [f"data_type: {TYPES[name]}", f"dims: [ {sizes} ]"]


def _block(name: str, lines: Sequence[str]) -> list[str]:
    return [f"{name} {{", *(f"  {line}" for line in lines), "}"]


def _list(name: str, items: Iterable[Sequence[str]]) -> list[str]:
    found = [["  {", *(f"    {line}" for line in item), "  },"] for item in items]
    found[-1][-1] = "  }"
    return [f"{name} [", *(line for item in found for line in item), "]"]


TENSORRT = (
    "# On a GPU with TensorRT, without the marks at the lines' beginnings (the first frame of each size "
    "then takes minutes):",
    "# optimization { execution_accelerators { gpu_execution_accelerator : [ {",
    '#   name : "tensorrt"',
    '#   parameters { key: "precision_mode" value: "FP16" }',
    '#   parameters { key: "max_workspace_size_bytes" value: "1073741824" }',
    "# } ] } }",
)
README = """# NAME

For Triton Inference Server with its ONNX Runtime backend: `tritonserver --model-repository=FOLDER_ABOVE_THIS_ONE`.
The server keeps the temporal mean of every stream; a client sends frames and two flags. Written by
`steadyseg export --target triton`, which ran no server: config.pbtxt was parsed by Triton's own schema, and its names,
types and shapes were compared with the graph.

```python
import numpy as np
import tritonclient.grpc as triton

client = triton.InferenceServerClient("localhost:8001")
gap = triton.InferInput("gap", [1, 1], "FP32")
gap.set_data_from_numpy(np.ones((1, 1), np.float32))  # source frames since the last one that was sent
for number, frame in enumerate(frames):  # (H, W, 3) uint8 RGB
    image = triton.InferInput("frame", [1, *frame.shape], "UINT8")
    image.set_data_from_numpy(frame[None])
    flags = {"sequence_start": number == 0, "sequence_end": number == len(frames) - 1}
    found = client.infer("NAME", [image, gap], sequence_id=1, **flags)
    label, uncertainty = found.as_numpy("label")[0], found.as_numpy("entropy")[0]
```

- A stream is a `sequence_id` other than 0. Its first request needs `sequence_start`, which also starts its mean anew:
  send it again at a scene cut, a seek or another frame size. Its last request needs `sequence_end`; without it the
  server holds the stream's state for a minute.
- The server computes the waiting frames of up to 8 streams in one call (`max_batch_size` of config.pbtxt; 0: one
  stream). Frames of different sizes cannot share a call.
- A model that follows motion (`--motion on`) has two more inputs, `motion` and `trust`: deploy/clients/triton of
  SteadySeg computes them, and sends several videos at once.
- `reset` and the states are the server's; clients do not send them.
- To warm a server up, send a sequence of one frame of your size. `model_warmup` in config.pbtxt bypasses the part of
  the server that holds states, so a model with states could fail to load with it.
"""
