"""Comparable values of files: hashes, and metadata without what depends on the clock."""

import hashlib
import json
from pathlib import Path
from typing import Any

TIMES = {"fps", "stages", "seconds", "images_per_s"}
"""Keys of reports and checkpoints that depend on the clock."""


def report(path: Path) -> Any:
    """A JSON report without times; the folder of the file is written as WORK."""
    return without_times(json.loads(path.read_text().replace(str(path.parent), "WORK")))


def checkpoint(path: Path) -> dict[str, Any]:
    """Hash of the weights of a .safetensors file, its tensors, and its metadata without times."""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    return {"weights": sha256(data[end:]), "metadata": without_times(header.pop("__metadata__")), "tensors": header}


def pictures(folder: Path) -> dict[str, str]:
    """SHA-256 of every PNG in a folder."""
    return {str(path.relative_to(folder)): sha256(path.read_bytes()) for path in sorted(folder.rglob("*.png"))}


def graph(path: Path) -> str:
    """Hash of an .onnx file without metadata: exporters add modules and lines of code to every node."""
    import onnx

    model = onnx.load(path)
    strip(model)
    return sha256(model.SerializeToString(deterministic=True))


def strip(message: Any) -> None:
    """Clears the metadata of a protobuf message and of all messages in it."""
    for field, value in message.ListFields():
        if field.name in ("metadata_props", "doc_string", "producer_name", "producer_version"):
            message.ClearField(field.name)
        elif field.message_type is not None:
            for one in [value] if hasattr(value, "ListFields") else value:
                strip(one)


def without_times(value: Any) -> Any:
    """A copy without the keys that depend on the clock. It reads JSON in strings, which checkpoints contain."""
    if isinstance(value, dict):
        return {key: without_times(one) for key, one in value.items() if key not in TIMES}
    if isinstance(value, list):
        return [without_times(one) for one in value]
    return without_times(json.loads(value)) if isinstance(value, str) and value[:1] in ("{", "[") else value


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
