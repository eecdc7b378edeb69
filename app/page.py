"""The page of `steadyseg demo`: a camera or a file in, the segmentation and its uncertainty out."""

import os
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.page_file_tab import add_file_tab
from app.page_legend import legend
from app.page_live_tab import add_live_tab
from app.page_session import Sessions
from app.page_settings import FIRST_MODE, LOOKS, MODES, MOST_LOOKS, degraded, model_choices, model_meta, notices
from app.page_style import CSS, theme
from core.checkpoint import CheckpointMeta
from core.device import choose_device
from core.errors import InputError

if TYPE_CHECKING:
    import gradio as gr

TITLE = "SteadySeg"
SENTENCE = "Every frame comes back as a segmentation and as an honest map of where it may be wrong."
LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
LARGEST_UPLOAD = "500mb"
CHECK_S, AGE_S = 300, 3600
"""Every five minutes, uploads older than an hour are removed; results go with the session, everything with the server."""


def serve(host: str, port: int, model: str, open_browser: bool) -> int:
    """Serves the page until Ctrl-C, then returns 0. Raises InputError where it cannot be served or has no model."""
    meta = model_meta(model)
    check_address(host, port)
    with tempfile.TemporaryDirectory(prefix="steadyseg-") as folder:
        # Gradio's default is one folder for every user of the machine, /tmp/gradio, and it is never emptied.
        os.environ["GRADIO_TEMP_DIR"] = folder
        page = build_page(model)
        address = launch(page, host, port, open_browser)
        try:
            announce(address, model, meta, host)
            while True:
                time.sleep(1)
        except KeyboardInterrupt:
            return 0
        finally:
            page.close(verbose=False)


def announce(address: str, model: str, meta: CheckpointMeta, host: str) -> None:
    """Prints where the page is, what it runs and what is degraded."""
    print(f"SteadySeg at {address}  (Ctrl-C ends it)")
    print(f"model {Path(model).name}, executor torch on {choose_device('auto').type}")
    for note in degraded(meta):
        print(f"note: {note}")
    if host not in LOCAL_HOSTS:
        print("note: whoever reaches this address can use the page; browsers give it the camera only over HTTPS")
    sys.stdout.flush()


def build_page(model: str) -> "gr.Blocks":
    """The page with `model` chosen at first. Raises InputError where there is no such checkpoint."""
    import gradio as gr

    meta = model_meta(model)
    sessions = Sessions(Path(gr.utils.get_upload_folder()))
    with gr.Blocks(title=TITLE, analytics_enabled=False, fill_width=True, delete_cache=(CHECK_S, AGE_S)) as page:
        gr.HTML(f"<h1>{TITLE}</h1><p>{SENTENCE}</p>", elem_id="title")
        controls = add_controls(model)
        noted = gr.HTML(notices(meta), elem_id="notices")
        colors = gr.HTML(legend(meta.classes), elem_id="legend")
        with gr.Tab("Live"):
            add_live_tab(sessions, controls)
        with gr.Tab("File"):
            add_file_tab(sessions, controls)
        controls[0].change(describe, controls[0], [noted, colors], show_progress="hidden", api_visibility="private")

        def end(request: gr.Request) -> None:
            sessions.close(str(request.session_hash))

        page.unload(end)
    return page.queue(default_concurrency_limit=2, max_size=32)


def add_controls(model: str) -> list[Any]:
    """Model, mode and number of looks: the fields of `Settings`, in order."""
    import gradio as gr

    with gr.Row(equal_height=True):
        models = gr.Dropdown(model_choices(model), value=model, label="Model", scale=1, min_width=180, elem_id="model")
        modes = gr.Radio(list(MODES), value=FIRST_MODE, label="Mode", scale=4, elem_id="mode")
        looks = gr.Slider(1, MOST_LOOKS, LOOKS, step=1, label="Looks a frame", visible=False, scale=1, elem_id="looks")
    modes.change(
        lambda mode: gr.update(visible=mode == "bnn"), modes, looks, show_progress="hidden", api_visibility="private"
    )
    return [models, modes, looks]


def describe(model: str) -> tuple[str, str]:
    """Notices and legend of the chosen model."""
    meta = model_meta(model)
    return notices(meta), legend(meta.classes)


def launch(page: "gr.Blocks", host: str, port: int, open_browser: bool = False) -> str:
    """Starts the server in a thread of its own and returns the page's address."""
    _, address, _ = page.launch(
        server_name=host, server_port=port, inbrowser=open_browser, prevent_thread_lock=True, quiet=True, share=False,
        max_file_size=LARGEST_UPLOAD, allowed_paths=[], strict_cors=True, footer_links=[], run_history=False,
        enable_monitoring=False, ssr_mode=False, pwa=False, mcp_server=False, theme=theme(), css=CSS,
    )  # fmt: skip
    return str(address)


def check_address(host: str, port: int) -> None:
    """Raises InputError where nothing can be served at that address."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"the page cannot be served at {host}:{port} ({reason}); choose another --port or --host"
        ) from error
