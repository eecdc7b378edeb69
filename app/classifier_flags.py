"""The flags of commands that know both kinds of network: those that mean nothing for an image classifier are bad input."""

from collections.abc import Mapping

from core.errors import InputError


def refuse_flags(model: str, given: Mapping[str, bool]) -> None:
    """InputError for the first flag, by name, that was given although a classifier has no use for it."""
    for name, was_given in given.items():
        if was_given:
            raise InputError(f"{name} is for segmentation networks and {model} is an image classifier; leave it away")
