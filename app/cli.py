"""The command line: words become a command with its flags, and what goes wrong one line and an exit code."""

import contextlib
import functools
import inspect
import io
import os
import sys
from collections.abc import Callable
from typing import Any

import tyro

from app.commands import ANALYSES, COMMANDS, TASKS, Task, analyze, train
from core.errors import CheckFailed, InputError


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; the exit code is 0 done, 1 a check failed, 2 bad input, 130 interrupted; 1 where nobody reads on."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        try:
            return parse_and_run(arguments)
        finally:
            sys.stdout.flush()  # here, not at exit, where a reader that left could no longer be caught
    except InputError as error:
        print(f"steadyseg: {error}", file=sys.stderr)
        return 2
    except CheckFailed as error:
        print(f"steadyseg: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("steadyseg: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the output's reader left, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered goes nowhere
        return 1  # as rich does


def parse_and_run(arguments: list[str]) -> int:
    """Only the named command's flags are built: the others cost nothing."""
    if arguments and arguments[0] in COMMANDS:
        name, rest = arguments[0], arguments[1:]
        if name == "analyze":
            return analyze_task(rest)
        return train_task(rest) if name == "train" else parse(COMMANDS[name], rest, f"steadyseg {name}")()
    if arguments and not arguments[0].startswith("-"):
        raise InputError(f"unknown command {arguments[0]!r}; choose from {', '.join(COMMANDS)}")
    print_overview(COMMANDS, arguments, "steadyseg", "Real-time video segmentation that knows when it is unsure.")
    return 0


def train_task(arguments: list[str]) -> int:
    """`train seg ...` and `train classification ...`: the task's word decides which flags there are."""
    if arguments and arguments[0] in TASKS:
        task, rest = TASKS[arguments[0]], arguments[1:]
        return parse(with_preset(task, rest), rest, f"steadyseg train {arguments[0]}")()
    if arguments and arguments[0] not in ("-h", "--help"):
        raise InputError(f"say what to train first, not {arguments[0]!r}; choose from {', '.join(TASKS)}")
    print_overview(
        {name: task.command for name, task in TASKS.items()}, arguments, "steadyseg train", _first_line(train)
    )
    return 0


def analyze_task(arguments: list[str]) -> int:
    """`analyze robustness ...`: the word after it decides which flags there are."""
    if arguments and arguments[0] in ANALYSES:
        return parse(ANALYSES[arguments[0]], arguments[1:], f"steadyseg analyze {arguments[0]}")()
    if arguments and arguments[0] not in ("-h", "--help"):
        raise InputError(f"say what to analyze first, not {arguments[0]!r}; choose from {', '.join(ANALYSES)}")
    print_overview(ANALYSES, arguments, "steadyseg analyze", _first_line(analyze))
    return 0


def print_overview(
    commands: dict[str, Callable[..., int]], arguments: list[str], program: str, description: str
) -> None:
    """Prints the list of commands and ends, as all help does."""
    tyro.extras.subcommand_cli_from_dict(
        {name: _describe(command) for name, command in commands.items()},
        args=arguments or ["--help"],
        prog=program,
        description=description,
    )


def parse(command: Callable[..., int], arguments: list[str], program: str) -> Callable[[], int]:
    """The command with its flags filled in; a wrong flag is one line, as all bad input is, and not tyro's box."""

    @functools.wraps(command)
    def bind(*args: Any, **kwargs: Any) -> Callable[[], int]:
        return functools.partial(command, *args, **kwargs)

    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(bind, args=arguments, prog=program, description=_first_line(command))
    except SystemExit as stop:
        if not stop.code:
            raise
        raise InputError(f"{first_paragraph(complaint.getvalue())}; see {program} --help") from None


def first_paragraph(box: str) -> str:
    """The words of a drawn box up to its first rule, on one line."""
    lines = [line.strip("│ ") for line in box.splitlines()[1:]]
    rule = next((number for number, line in enumerate(lines) if line.startswith(("─", "╰"))), len(lines))
    return " ".join(lines[:rule]).strip().rstrip(".")


def with_preset(task: Task, arguments: list[str]) -> Callable[..., int]:
    """The task's command with the defaults of the --preset that the arguments name."""
    name = next(iter(task.presets))
    for position, argument in enumerate(arguments):
        if argument.startswith("--preset"):
            name = argument.partition("=")[2] or (arguments[position + 1] if position + 1 < len(arguments) else "")
    if name not in task.presets:
        raise InputError(f"unknown preset {name!r}; choose from {', '.join(task.presets)}")

    @functools.wraps(task.command)
    def preset_train(*args: Any, **kwargs: Any) -> int:
        return task.command(*args, **kwargs)

    signature = inspect.signature(task.command)
    config = task.presets[name]
    parameters = [p.replace(default=config) if p.name == "config" else p for p in signature.parameters.values()]
    preset_train.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return preset_train


def _describe(command: Callable[..., int]) -> Callable[[], None]:
    """A stand-in without flags, so that the overview builds no parser but its own."""

    def overview() -> None: ...

    overview.__doc__ = _first_line(command)
    return overview


def _first_line(command: Callable[..., int]) -> str:
    return (command.__doc__ or "").splitlines()[0]


if __name__ == "__main__":
    sys.exit(main())
