"""The command line that makes a report again."""

import dataclasses
import shlex
from collections.abc import Iterator
from typing import Any, get_type_hints

from steadyseg.app.parsing import default_of, nested_options
from steadyseg.core.options import is_rare

OMITTED = ("output", "overwrite", "plots", "settings")
"""Fields that do not change what is measured."""


def command_line(study: str, models: tuple[str, ...], job: Any) -> str:
    """The command with its networks, its data, and every flag and setting that is not at its default."""
    words, settings = ["steadyseg", "analyze", study, *models], []
    for name, value, rare in changed(job):
        values = [str(one) for one in (value if isinstance(value, tuple) else (value,))]
        if rare:
            settings.append(f"{name}={','.join(values)}")
        else:
            words += [f"--{name.replace('_', '-')}", *values]
    return shlex.join(words + ["--config", *settings] * bool(settings))


def changed(job: Any) -> Iterator[tuple[str, Any, bool]]:
    """Yields name, value and whether it is a setting without a flag, of all that is not at its default."""
    hints = get_type_hints(type(job), include_extras=True)
    for field in dataclasses.fields(job):
        value = getattr(job, field.name)
        if nested_options(hints[field.name]):
            yield from changed(value)
        elif field.name not in ("models", *OMITTED) and value != default_of(field):
            yield field.name, value, is_rare(hints[field.name])
