"""A model in memory: a checkpoint that is found by name, read once, and builds networks on request."""

import dataclasses
import difflib
import hashlib
import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadyseg.core.errors import InputError, first_line
from steadyseg.core.model.checkpoint import CheckpointMeta, load_weights, parse_checkpoint, save_checkpoint
from steadyseg.core.model.tensor_file import StoredTensors, read_whole

if TYPE_CHECKING:
    from torch import Tensor, nn

SUFFIX = ".safetensors"
MIN_WEIGHT_LIMIT = 2**28
"""Number of weights that any record may ask for (1 GB). Libraries build parts that they take away again, such as the
120 million weights of a VGG's classifier."""

Builder = Callable[[dict[str, Any], int], "nn.Module"]
"""(options of a record, number of classes) -> a network with random weights."""


@dataclass(frozen=True, eq=False)
class Model:
    """A checkpoint's record and tensors."""

    name: str
    """The pretrained name or the path that the user gave."""
    path: Path
    sha256: str
    """SHA-256 of the bytes that were read, as 64 hexadecimal digits."""
    meta: CheckpointMeta
    tensors: "Mapping[str, Tensor]"
    builders: Mapping[str, Builder]
    """Builder of each known architecture."""
    is_file: bool = field(default=True, kw_only=True)
    """False if record or tensors are no longer the file's."""

    @property
    def arrays(self) -> Mapping[str, Any]:
        """The tensors of the file as NumPy's arrays. Raises KeyError for bf16 and float8, which NumPy lacks."""
        assert isinstance(self.tensors, StoredTensors)
        return self.tensors.arrays

    def network(self) -> "nn.Module":
        """Builds the network with these weights, in evaluation mode, a new one at each call.

        Callers switch its dropout or round its convolutions. Raises InputError where the record describes no valid
        network, or the weights do not fit it.
        """
        if self.meta.architecture not in self.builders:
            raise InputError(
                f"{self.path}: unknown architecture {self.meta.architecture!r}; choose from {', '.join(self.builders)}"
            )
        with limited_weights(self.tensors, self.path):
            network = self.builders[self.meta.architecture](self.meta.options, len(self.meta.classes))
        load_weights(network, self.tensors, self.path)
        return network.eval()

    def with_record(self, meta: CheckpointMeta, tensors: "Mapping[str, Tensor] | None" = None) -> "Model":
        """Returns this model with another record and, where given, other tensors."""
        tensors = self.tensors if tensors is None else tensors
        return dataclasses.replace(self, meta=meta, tensors=tensors, is_file=False)

    def save(self, path: Path) -> None:
        """Writes the checkpoint atomically, and the readable copy of its record beside it."""
        save_checkpoint(path, self.tensors, self.meta)


def read_model(name: str | Path, folders: tuple[Path, ...], builders: Mapping[str, Builder]) -> Model:
    """Reads the checkpoint of a pretrained name in `folders`, or of a path. Raises InputError for anything else."""
    path = find_in(name, *folders)
    data = read_whole(path)
    tensors, meta = parse_checkpoint(data, path)
    return Model(str(name), path, hashlib.sha256(data).hexdigest(), meta, tensors, builders)


def list_checkpoints(*folders: Path) -> dict[str, Path]:
    """The files of the pretrained checkpoints by name, folder by folder and sorted in each."""
    return {path.stem: path for folder in folders for path in sorted(folder.glob(f"*{SUFFIX}"))}


REPLACED = {
    "camvid-mobile": "road-mobile",
    "camvid-realtime": "road-realtime",
    "camvid-quality": "road-quality",
}
"""Names of version 0.2, and the networks that took their place."""


def find_in(model: str | Path, *folders: Path) -> Path:
    """The file of a pretrained name, or the path itself; InputError lists the known names."""
    text, known = str(model), list_checkpoints(*folders)
    if text in known:
        return known[text]
    if text in REPLACED and REPLACED[text] in known:
        warnings.warn(f"{text} is now {REPLACED[text]}, trained on more roads; the old name goes in 0.4", stacklevel=2)
        return known[REPLACED[text]]
    path, names = Path(text), ", ".join(known)
    if path.suffix in (".pt", ".pth", ".ckpt", ".pkl"):
        raise InputError(f"{text}: pickled checkpoints are refused because loading one can run code; use {SUFFIX}")
    if path.suffix.lower() == ".onnx":
        raise InputError(f"{text}: a graph file; this needs a {SUFFIX} checkpoint or a pretrained name ({names})")
    if path.suffix != SUFFIX and not os.path.exists(path):
        near = difflib.get_close_matches(text, known, n=1)
        hint = f"choose from {names}" if known else "there is none"
        if near:
            hint = f"did you mean {near[0]}? Pretrained are {names}"
        raise InputError(f"unknown model {text!r}; {hint}, or give a {SUFFIX} file")
    if not os.path.isfile(path):  # not pathlib's: it raises where a name is too long
        raise InputError(f"{text}: no such checkpoint file; pretrained ones are {names or 'none'}")
    return path


@contextmanager
def limited_weights(tensors: "Mapping[str, Tensor]", path: Path) -> Iterator[None]:
    """Limits the weights of the network that this thread builds inside the block to what `tensors` could fill.

    A network is built before its weights are loaded. Without the limit, a record of 2 kB built a network of 11 GB in 47
    s. Raises InputError at the first weight that is too many.
    """
    from torch.nn.modules.module import (
        register_module_buffer_registration_hook,
        register_module_parameter_registration_hook,
    )

    thread, built = threading.get_ident(), 0
    limit = max(MIN_WEIGHT_LIMIT, 2 * sum(tensor.numel() for tensor in tensors.values()))

    def count(module: "nn.Module", name: str, weight: "Tensor | None") -> None:
        nonlocal built
        if weight is not None and threading.get_ident() == thread:
            built += weight.numel()
            if built > limit:  # the weight's memory is reserved, but not written to yet
                raise InputError(
                    f"{path}: its record makes a network of more than {limit} weights, which it does not hold"
                )

    try:
        with register_module_parameter_registration_hook(count), register_module_buffer_registration_hook(count):
            yield
    except (RuntimeError, MemoryError) as error:  # torch's, of a single weight larger than the memory
        raise InputError(f"{path}: its record makes no network ({first_line(error)})") from error
