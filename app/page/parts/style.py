"""Style sheet and scripts of the page; all of them are part of this package."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradio.themes import Base

WEB = Path(__file__).parent.parent / "web"


def css() -> str:
    """The page's style sheet."""
    return (WEB / "page.css").read_text()


def head() -> str:
    """The page's scripts; they wait for clicks on elements that Gradio makes later."""
    scripts = "\n".join((WEB / name).read_text() for name in ("live.js", "instruments.js"))
    return f"<script>\n{scripts}\n</script>"


def theme() -> "Base":
    """A theme with system fonts: a font given as a string would be requested from the server, a Google font from
    Google."""
    import gradio as gr

    plain, mono = [gr.themes.Font("sans-serif")], [gr.themes.Font("monospace")]
    return gr.themes.Default(primary_hue="blue", font=plain, font_mono=mono)
