"""A limit on the memory of a parsed protobuf message, checked on its bytes before a parser allocates anything.

A node of two bytes becomes an object of 146 (measured: 16 MiB of empty nodes took 1.2 GB), so a limit on the file's
size does not limit the memory.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

MAX_PARTS = 2 * 2**20
"""Number of fields in a file: at most 300 MB once parsed. Measured: 11,000 in a U-Net, 12,000 more per further pass."""
PACKED_BYTES_PER_PART = 16
"""A packed varint of one byte becomes an integer of eight; 16 of them weigh as much as one field."""

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
"""Wire types of protobuf; 3 and 4 are groups, which ONNX does not use."""

MAX_DEPTH = 100
"""Nested messages, the limit of protobuf's own parsers."""


@dataclass(frozen=True)
class Field:
    """The interpretation of a field's bytes."""

    message: "Descriptor | None"
    """The type of the message inside, if it holds one."""
    text: bool
    varints: bool
    """True if it can be a packed list of numbers of varying length."""


Fields = dict[int, Field]
"""The fields of a message type by number."""


def count_parts(data: bytes, kind: "Descriptor") -> int:
    """Counts the fields of a message of type `kind` on all levels.

    ValueError for a message that is cut off, too large or too deep, for unknown fields, and for text that is not UTF-8.
    """
    known: dict[str, Fields] = {}
    inside = [(kind.name, _fields(kind, known), len(data))]  # the messages that hold the next byte, and where they end
    position = parts = 0
    while inside:
        name, fields, end = inside[-1]
        if position == end:
            inside.pop()
            continue
        number, wire, start, position = _next_field(data, position, end, name)
        if number not in fields:
            raise ValueError(f"field {number} of {name} is unknown")
        field = fields[number]
        parts += 1
        if wire == LENGTH and field.message is not None:
            inside.append((field.message.name, _fields(field.message, known), position))
            position = start
        elif wire == LENGTH and field.varints:
            parts += (position - start) // PACKED_BYTES_PER_PART
        elif wire == LENGTH and field.text:
            str(data[start:position], "utf-8")  # a parser would hand out bytes instead
        if parts > MAX_PARTS:
            raise ValueError(f"more than {MAX_PARTS} fields")
        if len(inside) > MAX_DEPTH:
            raise ValueError(f"more than {MAX_DEPTH} messages in one another")
    return parts


def _next_field(data: bytes, position: int, end: int, name: str) -> tuple[int, int, int, int]:
    """Returns number, wire type, and the start and end of the content."""
    tag, start = _varint(data, position, end)
    number, wire = tag >> 3, tag & 7
    if wire == VARINT:
        after = _varint(data, start, end)[1]
    elif wire == LENGTH:
        length, start = _varint(data, start, end)
        after = start + length
    elif wire in (FIXED32, FIXED64):
        after = start + (4 if wire == FIXED32 else 8)
    else:
        raise ValueError(f"wire type {wire} in {name}")
    if after > end:
        raise ValueError(f"{name} is cut off")
    return number, wire, start, after


def _fields(kind: "Descriptor", known: dict[str, Fields]) -> Fields:
    """Returns the fields of a message type; `known` caches them: two dozen types, thousands of messages."""
    from google.protobuf.descriptor import FieldDescriptor as Type

    if kind.full_name not in known:
        as_large_in_memory = {Type.TYPE_FLOAT, Type.TYPE_DOUBLE, Type.TYPE_STRING, Type.TYPE_BYTES, Type.TYPE_MESSAGE}
        known[kind.full_name] = {
            field.number: Field(
                field.message_type, field.type == Type.TYPE_STRING, field.type not in as_large_in_memory
            )
            for field in kind.fields
        }
    return known[kind.full_name]


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Returns the number at `position` and its end; ten bytes hold 64 bits."""
    value = 0
    for shift in range(0, 70, 7):
        if position >= end:
            raise ValueError("a number is cut off")
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    raise ValueError("a number has more than ten bytes")
