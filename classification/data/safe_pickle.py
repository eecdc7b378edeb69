"""Reads a pickle without executing it: calls are recorded instead of made, and few names are allowed."""

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.core.errors import InputError

NAMES = {
    ("numpy.core.multiarray", "_reconstruct"): "array",
    ("numpy._core.multiarray", "_reconstruct"): "array",
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): "dtype",
}
"""All names in a pickled array of numbers (numpy 1 and 2); the official CIFAR files use the first, third and fourth."""
OPCODES = (
    "PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINSTRING SHORT_BINSTRING BINBYTES "
    "SHORT_BINBYTES BINUNICODE SHORT_BINUNICODE EMPTY_LIST EMPTY_DICT EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 APPEND "
    "APPENDS SETITEM SETITEMS BINPUT LONG_BINPUT BINGET LONG_BINGET MEMOIZE GLOBAL STACK_GLOBAL INST REDUCE BUILD"
)
"""Opcodes of plain values and arrays; INST is among them, so that its name is reported like every other."""
MAX_NAME = 80


class _Name:
    """Stand-in for one of NAMES; a call of it is recorded and has no effect."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *arguments: Any) -> "Call":
        return Call(self.name, arguments)


class Call:
    """A recorded call, with the state that the pickle gives its result."""

    __slots__ = ("arguments", "name", "state")

    def __init__(self, name: str, arguments: tuple[Any, ...]) -> None:
        self.name, self.arguments, self.state = name, arguments, None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Unpickler(pickle._Unpickler):
    """Unpickler in Python: the one in C fills 64 GB of memory for a memo number that fits in five bytes.

    It does not call numpy's constructors either: `dtype` accepts a state that makes it read bytes as object pointers.
    """

    dispatch = {  # noqa: RUF012  (as the class above has it)
        code: pickle._Unpickler.dispatch[code] for code in (getattr(pickle, name)[0] for name in OPCODES.split())
    }

    def __init__(self, content: bytes, path: Path) -> None:
        super().__init__(io.BytesIO(content), encoding="bytes")  # what Python 2 wrote: some of its strings are pixels
        self.path = path

    def find_class(self, module: str, name: str) -> _Name:
        if (module, name) not in NAMES:
            wanted = ascii(f"{module}.{name}")[1:-1][:MAX_NAME]
            raise InputError(
                f"{self.path}: a pickle that wants to call {wanted}, which no CIFAR file needs, so it was not opened; "
                "fetch the data set again (steadyseg data)"
            )
        return _Name(NAMES[module, name])


def read_pickle(path: Path) -> dict[str, Any]:
    """Reads the dictionary in a file: numbers, lists, strings (bytes where Python 2 wrote them) and `Call`s.

    Its keys are text.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    try:
        record = _Unpickler(content, path).load()
    except InputError:
        raise
    except Exception as error:  # bytes that are no pickle end in any of a dozen ways
        raise InputError(f"{path}: damaged or no pickle ({type(error).__name__}); fetch the data set again") from error
    if not isinstance(record, dict):
        raise InputError(f"{path}: holds a {type(record).__name__}, expected CIFAR's dictionary")
    return {key.decode("latin-1") if isinstance(key, bytes) else key: value for key, value in record.items()}


def byte_array(value: Any) -> np.ndarray | None:
    """Returns the uint8 array of a recorded call; None where it is no array, or one of other numbers or of objects."""
    if not isinstance(value, Call) or value.name != "array" or not isinstance(value.state, tuple):
        return None
    if len(value.state) != 5:
        return None
    _, shape, dtype, fortran, content = value.state  # the state that ndarray.__reduce__ gives, version 1
    if not isinstance(dtype, Call) or dtype.name != "dtype" or dtype.arguments[:1] not in ((b"u1",), ("u1",)):
        return None
    if not isinstance(shape, tuple) or not isinstance(content, bytes):
        return None
    if not all(type(side) is int and 0 <= side <= len(content) for side in shape):
        return None
    array = np.frombuffer(content, np.uint8)
    return array.reshape(shape, order="F" if fortran else "C") if array.size == _product(shape) else None


def _product(shape: tuple[int, ...]) -> int:
    """Returns the product in Python's integers, as numpy's would wrap around; -1 for more than 32 dimensions."""
    product = 1
    for side in shape[:32]:
        product *= side
    return product if len(shape) <= 32 else -1
