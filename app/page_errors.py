"""Bad input as the page says it: the same one line as on the command line."""

from collections.abc import Iterator
from contextlib import contextmanager

from app.page_legend import escaped
from core.errors import InputError


@contextmanager
def input_errors_shown() -> Iterator[None]:
    """Turns an `InputError` into a message on the page; the page lives on."""
    import gradio as gr

    try:
        yield
    except InputError as error:
        raise gr.Error(escaped(str(error)), title="That did not work", print_exception=False) from error
