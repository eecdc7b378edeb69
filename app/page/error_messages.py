"""What goes wrong in an event of the page is said on the page; the log names no visitor's file."""

from typing import TYPE_CHECKING, Any

from app.page.guard import log_failure
from app.page.parts.legend import escape
from core.errors import InputError

if TYPE_CHECKING:
    import gradio as gr


def show_errors(blocks: "gr.Blocks") -> None:
    """Every event of these blocks, from the check of its values to its last result, shows its error as a message.

    Gradio prints a traceback for each, which holds the values that a visitor sent. Of what nobody foresaw the log has
    the kind.
    """
    import gradio as gr

    process = blocks.process_api

    async def process_api(*args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return await process(*args, **kwargs)
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
