"""Pickles that are not CIFAR's: what they want to run never runs, and what they claim is not believed."""

import os
import pickle
import resource
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refusal

from steadyseg.classification.data.safe_pickle import NAMES, Call, byte_array, read_pickle
from steadyseg.core.errors import InputError


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "batch"
    path.write_bytes(content)
    return path


class Calls:
    """Pickled as a call of something with these arguments."""

    def __init__(self, function: Any, *arguments: Any, state: Any = None) -> None:
        self.reduced = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.reduced


def array_of(
    shape: Any, content: Any, dtype: Any = "u1", fortran: Any = False, name: str = "array", dtype_name: str = "dtype"
) -> Call:
    inner = Call(dtype_name, (dtype, False, True))
    array = Call(name, ())
    array.state = (1, shape, inner, fortran, content)
    return array


# hostile


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("place", ["alone", "value", "key"])
def test_a_call_is_named_and_does_not_run(tmp_path: Path, protocol: int, place: str) -> None:
    proof = tmp_path / "ran"
    hostile = Calls(os.mkdir, str(proof))
    record: Any = {"alone": hostile, "value": {"data": hostile}, "key": {"a": [hostile]}}[place]
    content = pickle.dumps(record, protocol)
    path = written(tmp_path, content)
    message = refusal(lambda: read_pickle(path))
    if protocol:
        assert str(path) in message
        assert f"{os.mkdir.__module__}.mkdir" in message and "not opened" in message
    assert not proof.exists()
    pickle.loads(content)  # it would have run
    assert proof.exists()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("posix", "system"),
        ("builtins", "eval"),
        ("__builtin__", "eval"),
        ("numpy", "load"),
        ("numpy", "fromfile"),
        ("numpy", "memmap"),
        ("numpy.core.multiarray", "scalar"),
        ("numpy", "core.multiarray._reconstruct"),
        ("numpy.core", "multiarray._reconstruct"),
        ("numpy.core.multiarray", "fromfile"),
        ("numpy.lib.npyio", "load"),
        ("copyreg", "_reconstructor"),
        ("copy_reg", "_reconstructor"),
        ("_codecs", "encode"),
        ("builtins", "getattr"),
        ("steadyseg.classification.data.safe_pickle", "Call"),
        ("numpy._core.numeric", "_frombuffer"),
        ("NUMPY", "dtype"),
        ("numpy", "dtype "),
        ("a" * 500, "b\x1b[31m"),
        ("numpy", "ndarray.__init__"),
    ],
)
@pytest.mark.parametrize("instruction", ["GLOBAL", "STACK_GLOBAL", "INST"])
def test_every_name_but_numpy_s_four_is_refused(tmp_path: Path, module: str, name: str, instruction: str) -> None:
    content = {
        "GLOBAL": b"\x80\x02}U\x01dc" + f"{module}\n{name}\n".encode() + b"s.",
        "INST": b"\x80\x02}U\x01d(i" + f"{module}\n{name}\n".encode() + b"s.",
        "STACK_GLOBAL": b"\x80\x04}\x8c\x01d" + text(module) + text(name) + b"\x93s.",
    }[instruction]
    message = refusal(lambda: read_pickle(written(tmp_path, content)))
    assert module[:60] in message and "wants to call" in message and message.isascii() and message.isprintable()


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def test_the_allowed_names_are_exactly_these() -> None:
    assert sorted(NAMES) == [
        ("numpy", "dtype"),
        ("numpy", "ndarray"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy.core.multiarray", "_reconstruct"),
    ]


def test_what_is_allowed_is_not_called_either(tmp_path: Path) -> None:
    """numpy.ndarray((2**40,)) would ask for a terabyte, and a dtype's state can be made to read bytes as pointers."""
    content = pickle.dumps({"a": Calls(np.ndarray, (2**40,)), "b": Calls(np.dtype, "O")}, 4)
    record = read_pickle(written(tmp_path, content))
    assert all(isinstance(value, Call) for value in record.values())
    assert record["a"].arguments == ((2**40,),) and record["b"].arguments == ("O",)


@pytest.mark.parametrize(
    "hostile",
    [
        np.array([1, "a", None], object),
        np.zeros(3, np.float32),
        np.zeros(3, np.dtype([("a", object)])),
        np.zeros(3, "V1"),
        np.zeros(3, bool),
        np.zeros(3, np.int8),
        np.uint8(3),
        np.dtype("u1"),
        [0, 1],
        b"\0\1",
        None,
    ],
    ids=str,
)
def test_arrays_of_anything_but_bytes_are_none(tmp_path: Path, hostile: Any) -> None:
    try:
        record = read_pickle(written(tmp_path, pickle.dumps({"data": hostile}, 4)))
    except InputError as error:
        assert isinstance(hostile, np.uint8) and "scalar" in str(error)
        return
    assert byte_array(record["data"]) is None


@pytest.mark.parametrize(
    "value",
    [
        array_of((4,), b"abc"),
        array_of((2,), b"abc"),
        array_of((-3,), b"abc"),
        array_of((-1, -3), b"abc"),
        array_of((3.0,), b"abc"),
        array_of((True, 3), b"abc"),
        array_of(3, b"abc"),
        array_of([3], b"abc"),
        array_of((3,), [1, 2, 3]),
        array_of((3,), "abc"),
        array_of((3,), b"abc", "O"),
        array_of((3,), b"abc", "i1"),
        array_of((3,), b"abc", ["u1"]),
        array_of((3,), b"abc", name="ndarray"),
        array_of((3,), b"abc", dtype_name="array"),
        array_of((2**32, 2**32, 2**32), b""),
        array_of((1,) * 33, b"a"),
        array_of((10**400,), b"abc"),
        Call("array", ()),
    ],
)
def test_a_shape_that_its_bytes_do_not_fill_is_none(value: Call) -> None:
    assert byte_array(value) is None


def test_a_state_of_another_kind_is_none() -> None:
    whole = array_of((3,), b"abc")
    assert byte_array(whole) is not None
    for state in (
        whole.state[:4],
        (*whole.state, 1),
        list(whole.state),
        None,
        (*whole.state[:2], None, *whole.state[3:]),
    ):
        whole_again = array_of((3,), b"abc")
        whole_again.state = state
        assert byte_array(whole_again) is None


# damaged


def test_a_memo_number_does_not_take_memory(tmp_path: Path) -> None:
    path = written(tmp_path, b"\x80\x02}r\xff\xff\xff\xff.")
    with limited_memory():
        assert read_pickle(path) == {}


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x05}\x96" + struct.pack("<Q", 2**36) + b".",
        b"\x80\x02}T\xff\xff\xff\x7f.",
        b"\x80\x04}\x8e" + b"\xff" * 8,
        b"\x80\x04}\x95" + struct.pack("<Q", 2**62),
        b"\x80\x02}B\xff\xff\xff\xff.",
        b"\x80\x02}\x8b\xff\xff\xff\x7f.",
    ],
    ids=["BYTEARRAY8", "BINSTRING", "BINBYTES8", "FRAME", "BINBYTES", "LONG4"],
)
def test_a_claimed_length_does_not_take_memory(tmp_path: Path, content: bytes) -> None:
    with limited_memory():
        assert "damaged" in refusal(lambda: read_pickle(written(tmp_path, content)))


class limited_memory:  # noqa: N801  (reads as a phrase in `with limited_memory()`)
    """One gigabyte more than now for the length of a `with` block."""

    def __enter__(self) -> None:
        self.before = resource.getrlimit(resource.RLIMIT_AS)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, self.before[1]))

    def __exit__(self, *_: object) -> None:
        resource.setrlimit(resource.RLIMIT_AS, self.before)


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory limits and /proc are Linux's")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b".",
        b"hello",
        b"\x80",
        b"\x80\xff}.",
        b"\x80\x02}",
        b"\x80\x02.",
        b"\x80\x02}(U\x01ds.",
        b"}h\x05.",
        b"\x80\x02}b.",
        b"\x80\x02}U\x01aU\x01bb.",
        b"\x80\x02}U\x01aK\x01R.",
        b"\x80\x02}]K\x01s.",
        b"\x80\x04}\x81.",
        b"\x80\x02}\x82\x01.",
        b"\x80\x02}Pmine\n.",
        b"\x80\x02cnumpy\ndtype\nU\x01ab.",
        b"\x80\x02cnumpy",
        b"\x80\x02cnumpy\ndtype\nN}U\x04namecos\nsystem\ns\x86b.",
        b"(" * 100_000 + b".",
        b"]" * 100_000 + b".",
        b"\x80\x05\x97.",
    ],
)
def test_what_is_no_whole_pickle_of_a_dictionary_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = written(tmp_path, content)
    assert str(path) in refusal(lambda: read_pickle(path))


@pytest.mark.slow
def test_every_truncation_and_many_turned_bytes_are_one_line_or_a_dictionary(tmp_path: Path) -> None:
    whole = pickle.dumps(
        {"data": np.arange(12, dtype=np.uint8).reshape(2, 6), "labels": [3, 700], "names": ["a", b"b"]}, 4
    )
    for length in range(len(whole)):
        refusal(lambda length=length: read_pickle(written(tmp_path, whole[:length])))  # type: ignore[misc]
    generator = np.random.default_rng(0)
    with limited_memory():
        for _ in range(150):
            turned = bytearray(whole)
            for place in generator.integers(0, len(whole), 2):
                turned[place] = generator.integers(0, 256)
            try:
                record = read_pickle(written(tmp_path, bytes(turned)))
            except InputError as error:
                assert len(str(error).splitlines()) == 1
            else:
                byte_array(record.get("data"))


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(lambda: read_pickle(tmp_path / "nowhere"))
    assert str(tmp_path) in refusal(lambda: read_pickle(tmp_path))


# whole


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("protocol", [3, 4])
def test_arrays_come_back_whichever_order_they_lay_in(tmp_path: Path, protocol: int, order: Any) -> None:
    array = np.asarray(np.random.default_rng(0).integers(0, 256, (4, 7), dtype=np.uint8), order=order)
    record = read_pickle(
        written(tmp_path, pickle.dumps({b"data": array, "n": [1, 300, 70_000, -1, None, True]}, protocol))
    )
    found = byte_array(record["data"])
    assert found is not None
    np.testing.assert_array_equal(found, array)
    assert record["n"] == [1, 300, 70_000, -1, None, True]
