"""A model in memory: a checkpoint that is read once and builds networks on request."""

import dataclasses
import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)

from core.errors import InputError
from core.model.checkpoint import CheckpointMeta, load_weights, parse_checkpoint, save_checkpoint
from core.model.pretrained import find_in
from core.model.tensor_file import read_whole

MIN_WEIGHT_LIMIT = 2**28
"""Number of weights that any record may ask for (1 GB): libraries build parts that they take away again, such as the
120 million weights of a VGG's classifier."""

Builder = Callable[[dict[str, Any], int], nn.Module]
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
    tensors: Mapping[str, Tensor]
    builders: Mapping[str, Builder]
    """Builder of each known architecture."""

    def network(self) -> nn.Module:
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

    def with_record(self, meta: CheckpointMeta, tensors: Mapping[str, Tensor] | None = None) -> "Model":
        """Returns this model with another record and, where given, other tensors."""
        return dataclasses.replace(self, meta=meta, tensors=self.tensors if tensors is None else tensors)

    def save(self, path: Path) -> None:
        """Writes the checkpoint atomically, and the readable copy of its record beside it."""
        save_checkpoint(path, self.tensors, self.meta)


def read_model(name: str | Path, folders: tuple[Path, ...], builders: Mapping[str, Builder]) -> Model:
    """Reads the checkpoint of a pretrained name in `folders`, or of a path. Raises InputError for anything else."""
    path = find_in(name, *folders)
    data = read_whole(path)
    tensors, meta = parse_checkpoint(data, path)
    return Model(str(name), path, hashlib.sha256(data).hexdigest(), meta, tensors, builders)


@contextmanager
def limited_weights(tensors: Mapping[str, Tensor], path: Path) -> Iterator[None]:
    """Limits the weights of the network that this thread builds inside the block to what `tensors` could fill.

    A network is built before its weights are loaded: without the limit, a record of 2 kB built a network of 11 GB in 47
    s. Raises InputError at the first weight that is too many.
    """
    thread, built = threading.get_ident(), 0
    limit = max(MIN_WEIGHT_LIMIT, 2 * sum(tensor.numel() for tensor in tensors.values()))

    def count(module: nn.Module, name: str, weight: Tensor | None) -> None:
        nonlocal built
        if weight is not None and threading.get_ident() == thread:
            built += weight.numel()
            if built > limit:  # its memory is asked for but not written to yet
                raise InputError(
                    f"{path}: its record makes a network of more than {limit} weights, which it does not hold"
                )

    handles = [
        register(count)
        for register in (register_module_parameter_registration_hook, register_module_buffer_registration_hook)
    ]
    try:
        yield
    except (RuntimeError, MemoryError) as error:  # torch's, of a single weight larger than the memory
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"{path}: its record makes no network ({first})") from error
    finally:
        for handle in handles:
            handle.remove()
