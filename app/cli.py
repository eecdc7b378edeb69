"""The command line: parses the arguments, runs the command, and turns errors into one line and an exit code."""

import io
import os
import sys
from argparse import Namespace
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tyro

from steadyseg.app.commands import STEADYSEG, Command, find_command, load
from steadyseg.app.parsing import parse
from steadyseg.app.settings import LIST, early_words, list_settings, print_settings, read_settings, settings_of_run
from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.system.files import DISK_ERRORS, describe_disk_error
from steadyseg.core.system.interrupts import interruptible
from steadyseg.core.system.telling import telling

EXTRAS = {
    "train": ("torch", "torchvision", "timm", "segmentation_models_pytorch"),
    "export": ("onnxscript", "onnxruntime"),
}
"""Packages that an extra brings: running an included network needs none of them."""


def main(arguments: list[str] | None = None, root: Command = STEADYSEG, program: str = "steadyseg") -> int:
    """Runs one command of `root` and returns its exit code.

    The code is 0 if done, 2 for bad input and 130 if interrupted. It is 1 if a check failed, the disk is full, or the
    reader of the output is gone.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):  # a pipe of another encoding cannot hold each letter
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")
    try:
        with interruptible():
            try:
                return parse_and_run(arguments, root, program)
            finally:
                sys.stdout.flush()  # here, because an error of the flush at exit cannot be caught
    except (InputError, CheckFailed) as error:
        message, code = str(error), 2 if isinstance(error, InputError) else 1
    except KeyboardInterrupt:
        from steadyseg.app.console import UNFINISHED

        message, code = f"interrupted{UNFINISHED[0]}", 130
    except ModuleNotFoundError as error:
        extra = next((extra for extra, modules in EXTRAS.items() if (error.name or "").split(".")[0] in modules), None)
        if extra is None:
            raise
        message, code = f"this needs {error.name}: pip install '.[{extra}]' in SteadySeg's clone", 2
    except BrokenPipeError:  # the reader of the output is gone, as after `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # discards the buffered rest
        return 1  # the exit code of rich for this error
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        message, code = describe_disk_error(error), 1
    print(f"steadyseg: {message}", file=sys.stderr)  # outside the block above, whose progress bars have now ended
    return code


def parse_and_run(arguments: list[str], root: Command, program: str) -> int:
    """Parses the arguments and runs the command; only the flags of that command are imported."""
    if arguments == ["--version"]:
        print(version("steadyseg"))
        return 0
    program, command, rest = find_command(arguments, root, program)
    if command.kinds:
        kinds = {name: _describe(kind.summary) for name, kind in command.kinds.items()}
        tyro.extras.subcommand_cli_from_dict(kinds, args=["--help"], prog=program, description=command.summary)
        return 0
    if not command.flags:
        parse(lambda: None, rest, program, command.summary)
        return int(load(command.run)())
    job = read_flags(program, command, rest)  # before the command's own module, which takes seconds
    with telling(f"{program}: loads its libraries ..."):
        run = load(command.run)
    return int(run(job))


def read_flags(program: str, command: Command, words: list[str]) -> Any:
    """Parses the flags of the command on top of its preset and `--config`. With `--config list` it prints the settings
    and exits."""
    options = load(command.flags)
    if not any(list_settings(options)):
        return parse(options, words, program, command.summary)
    early = early_words(words)
    default, settings = preset_of(command, early.preset), settings_of(options, early)
    if early.config == [LIST]:
        print_settings(options, default, settings)
        raise SystemExit(0)
    return parse(options, words, program, command.summary, default, settings)


def preset_of(command: Command, name: str | None) -> Any:
    """Returns the flags of the preset `name`, else of the first preset; None for commands without presets."""
    if not command.presets:
        return None
    presets = load(command.presets)
    if (name := name or next(iter(presets))) not in presets:
        raise InputError(f"unknown preset {name!r}; choose from {', '.join(presets)}")
    return load(command.flags)(config=presets[name])


def settings_of(options: Any, early: Namespace) -> dict[str, Any]:
    """The settings of --config; a resumed training adds its first settings, or with --preset only its first data."""
    given = read_settings(early.config, options) if early.config != [LIST] else {}
    begun = settings_of_run(options, Path(early.run or options.run)) if early.resume else {}
    return {name: value for name, value in begun.items() if name == "data" or not early.preset} | given


def _describe(summary: str) -> Callable[[], None]:
    """Returns a function without flags for the overview, so that no flags of the kind itself are imported."""

    def overview() -> None: ...

    overview.__doc__ = summary
    return overview


if __name__ == "__main__":
    sys.exit(main())
