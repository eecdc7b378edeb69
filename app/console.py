"""The terminal as all commands print to it."""

import rich.console


class Console(rich.console.Console):
    """A console that shows text as it is: a class, a model or a file may be called `[/b]` or `:smile:`."""

    def __init__(self, *, stderr: bool = False, quiet: bool = False) -> None:
        super().__init__(stderr=stderr, quiet=quiet, markup=False, emoji=False)
