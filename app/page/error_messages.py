"""Checks around every event of the page: inputs may name uploads only; errors become messages on the page, and the log
never holds a visitor's values."""

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.page.guard import log_failure
from app.page.visitors.sessions import require_upload
from core.errors import InputError

if TYPE_CHECKING:
    import gradio as gr


def guard_events(blocks: "gr.Blocks", uploads: Path) -> None:
    """Checks the inputs of every event of these blocks and shows its errors as messages.

    Gradio fetches the file of any input that names an address, in every event and whatever the component, before the
    event's own function sees the value. So inputs are checked here first. Gradio also prints a traceback for each
    error, with the values that a visitor sent; the log gets the kind of an unforeseen error instead.
    """
    import gradio as gr

    process = blocks.process_api

    async def process_api(block_fn: Any, inputs: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            require_uploads(inputs, uploads)
            return await process(block_fn, inputs, *args, **kwargs)
        except Exception as error:
            if isinstance(error, InputError):
                text = escape(str(error))
            elif isinstance(error, gr.Error) or not log_failure(
                error
            ):  # a value that no control has, a file that is no upload
                text = "the page cannot read that; reload it"
            else:
                text = "something failed in this file"
            raise gr.Error(text, title="That did not work", print_exception=False) from error

    blocks.process_api = process_api  # type: ignore[method-assign]


def require_uploads(inputs: Any, folder: Path) -> None:
    """Raises InputError for a file among the values of an event, at any depth, that is not an upload in `folder`.

    Every dictionary with a text `path` or `url` counts as a file: Gradio knows several forms, and no control of the
    page has such a value of its own.
    """
    waiting = [inputs]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if isinstance(value.get("path"), str):
                require_upload(value["path"], folder)
            elif isinstance(value.get("url"), str):
                raise InputError("this file was not uploaded here; choose it again")
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value
