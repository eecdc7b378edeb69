"""Names of the timm library's networks, checked before timm sees them."""

import difflib

from core.errors import InputError


def require_timm_name(name: str, prefix: str) -> None:
    """Raises InputError, with the nearest names behind `prefix`, for a name that the installed timm does not list.

    timm also takes `hf-hub:` and `local-dir:` names and paths: with one of those a record would decide what is fetched,
    or which folder a network is built from.
    """
    import timm

    if ":" in name or "/" in name or not timm.is_model(name):
        near = difflib.get_close_matches(name, timm.list_models(), n=3)
        hint = f"did you mean {' or '.join(prefix + n for n in near)}?" if near else "see timm.list_models()"
        raise InputError(f"timm has no network {name[:80]!r}; {hint}")
