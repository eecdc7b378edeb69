"""Names of classes as the fonts of legends and contact sheets can draw them."""

import unicodedata
from functools import lru_cache


@lru_cache(maxsize=16)
def drawable(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names as the font can draw them. One with letters beyond ASCII gets its id; accents fall, and the code stands
    for any other letter, for which the font has a box."""

    def plain(name: str) -> str:
        letters = [letter for letter in unicodedata.normalize("NFKD", name) if not unicodedata.combining(letter)]
        return "".join(letters).encode("ascii", "backslashreplace").decode()

    return tuple(name if name.isascii() else f"{number}: {plain(name)}" for number, name in enumerate(names))
