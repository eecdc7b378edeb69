"""Small damages to what a file holds: its bytes, a JSON value, a protobuf message."""

import contextlib
import copy
import math
from collections.abc import Iterator
from random import Random
from typing import Any

EDGES = (0, 1, 2, 3, 31, 127, 128, 255, 256, 4095, 65535, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**63 - 1)
NUMBERS = (-1, -3, 0.5, 1e-30, 1e30, math.inf, -math.inf, math.nan, 2**70, 10**400, *EDGES)
ODD: tuple[Any, ...] = (None, True, *NUMBERS, "", "x" * 3000, "\x1b[2J\n", "\ud800", [], {}, [[[[]]]])


def damage_bytes(data: bytes, dice: Random, start: int = 0) -> bytes:
    """Applies one to eight damages behind the first `start` bytes: flips, extremes, pieces lost or moved."""
    found = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 4, 8))):
        place, other = (dice.randrange(start, max(len(found), start + 1)) for _ in range(2))
        length, size = dice.randrange(1, 64), dice.choice((1, 2, 4, 8))
        edge = (dice.choice(EDGES) % 256**size).to_bytes(size, dice.choice(("little", "big")))
        way = dice.randrange(20)
        if way < 6:
            found[place : place + 1] = bytes([dice.randrange(256)])
        elif way < 12:
            found[place : place + size] = edge
        elif way < 14:
            del found[place : place + length]
        elif way < 16:
            found[place:place] = found[other : other + length]
        elif way < 19:
            found[place : place + length] = found[other : other + length]
        else:
            del found[max(place, len(found) // 2) :]
    return bytes(found)


def damage_json(value: Any, dice: Random) -> Any:
    """Removes, renames or replaces one to three parts of a JSON value."""
    value = copy.deepcopy(value)
    for _ in range(dice.choice((1, 1, 2, 3))):
        if not isinstance(value, dict | list) or not value:
            return dice.choice(ODD)
        (inside, key), (from_where, other) = _place(value, dice), _place(value, dice)
        way = dice.randrange(8)
        if way == 0:
            del inside[key]
        elif way == 1:
            inside[key] = copy.deepcopy(from_where[other])
        elif way == 2 and isinstance(inside, dict):
            inside[f"{key}x"] = inside.pop(key)
        else:
            inside[key] = dice.choice(ODD)
    return value


def _place(value: Any, dice: Random) -> tuple[Any, Any]:
    """A list or object and an index or key in it, on any level: a short part is met as often as a long one."""
    while True:
        key = dice.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if not isinstance(value[key], dict | list) or not value[key] or dice.random() < 0.3:
            return value, key
        value = value[key]


def damage_message(message: Any, dice: Random) -> Any:
    """Returns a copy with one to three fields changed, emptied, doubled or lost; weights count as bytes."""
    found = type(message)()
    found.CopyFrom(message)
    for _ in range(dice.choice((1, 1, 2, 3))):
        parts = [part for part in _parts(found) if part.ListFields()]
        owner, other = dice.choice(parts), dice.choice(parts)
        field, value = dice.choice(owner.ListFields())
        with contextlib.suppress(ValueError):  # a number that the field cannot hold
            if hasattr(value, "append"):
                _damage_list(value, dice)
            elif hasattr(value, "CopyFrom"):
                owner.ClearField(field.name) if dice.random() < 0.3 else value.CopyFrom(
                    dice.choice(_alike(found, value))
                )
            else:
                setattr(owner, field.name, _damaged(value, getattr(other, field.name, value), dice))
    return found


def _damage_list(values: Any, dice: Random) -> None:
    """Damages a repeated field: an entry is removed, moved to the end, doubled, or changed."""
    place, way = dice.randrange(len(values)), dice.randrange(4)
    entry = values[place]
    if way == 0 or (way == 1 and hasattr(entry, "CopyFrom")):
        del values[place]
    elif way < 3:
        values.append(entry) if not hasattr(entry, "CopyFrom") else values.add().CopyFrom(entry)
    elif not hasattr(entry, "CopyFrom"):
        values[place] = _damaged(entry, values[dice.randrange(len(values))], dice)


def _damaged(value: Any, other: Any, dice: Random) -> Any:
    if isinstance(value, bytes):
        return damage_bytes(value, dice)
    if isinstance(value, str):
        return other if isinstance(other, str) and dice.random() < 0.7 else dice.choice(("", "x", "x" * 3000, "a\nb"))
    if isinstance(value, float):
        return dice.choice((0.0, -1.0, 1e30, math.inf, math.nan))
    return dice.choice((-1, -2, *(edge for edge in EDGES if edge < 2**31)))


def _parts(message: Any) -> Iterator[Any]:
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inside in value if hasattr(value, "append") else [value]:
                yield from _parts(inside)


def _alike(root: Any, wanted: Any) -> list[Any]:
    return [part for part in _parts(root) if type(part) is type(wanted)]
