"""What goes wrong in an event of the page is said on the page; the log names no visitor's file."""

import sys
import traceback
from typing import TYPE_CHECKING, Any

from app.page.legend import escape
from core.errors import InputError

if TYPE_CHECKING:
    import gradio as gr


def show_errors(blocks: "gr.Blocks") -> None:
    """Every event of these blocks, from the check of its values to its last result, shows its error as a message.

    Gradio prints a traceback for each, which holds the values that a visitor sent. Of what nobody foresaw the log has the kind.
    """
    import gradio as gr
    from gradio.exceptions import InvalidPathError

    process = blocks.process_api

    async def process_api(*args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return await process(*args, **kwargs)
        except Exception as error:
            if isinstance(error, InputError):
                text = escape(str(error))
            elif isinstance(
                error, (gr.Error, InvalidPathError)
            ):  # a value that no control has, a file that is no upload
                text = "the page cannot read that; reload it"
            else:
                text = "something failed in this file"
                last = traceback.extract_tb(error.__traceback__)[-1]
                print(f"page: {type(error).__name__} in {last.name}", file=sys.stderr)
            raise gr.Error(text, title="That did not work", print_exception=False) from error

    blocks.process_api = process_api  # type: ignore[method-assign]
