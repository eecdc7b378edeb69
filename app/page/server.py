"""The page of `steadyseg demo`: a camera or a file in, the segmentation and its uncertainty out."""

import inspect
import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadyseg.app.in_browser.site import check_site
from steadyseg.app.page.flags import PageOptions
from steadyseg.app.page.guard import IN_BROWSER, Guard, guard_events
from steadyseg.app.page.layout import build_blocks
from steadyseg.app.page.live.live_routes import live_routes
from steadyseg.app.page.live.live_worker import LiveWorkers
from steadyseg.app.page.live.source_feed import SourceFeed, display_name, is_source
from steadyseg.app.page.parts.sessions import Sessions
from steadyseg.app.page.parts.settings import list_limits, method_settings, model_meta, offered_models
from steadyseg.core.errors import InputError, in_line
from steadyseg.core.system.hosts import LOCAL_HOSTS, AllowedHosts
from steadyseg.core.system.machine import share_arenas

if TYPE_CHECKING:
    import gradio as gr

WEB = Path(__file__).parent / "web"
"""Style sheet and scripts of the page."""

OWN = ("GRADIO_TEMP_DIR", "GRADIO_ANALYTICS_MAX_EVENTS")
"""Variables that `serving` sets."""
NETWORK = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir", "sslkeylogfile")
"""Variables of httpx, in small letters: a proxy or certificates that are wrong stop its clients."""


@dataclass(frozen=True)
class Page:
    """The Gradio page and the workers beside it."""

    blocks: "gr.Blocks"
    workers: LiveWorkers
    sessions: Sessions
    names: AllowedHosts
    options: PageOptions

    def launch(self) -> str:
        """Starts the server in a thread of its own and returns the page's address."""
        from starlette.middleware import Middleware
        from starlette.routing import Mount
        from starlette.staticfiles import StaticFiles

        options = self.options
        middleware = [Middleware(Guard, names=self.names, max_upload=options.max_upload_mb * 10**6)]
        routes: list[Any] = [*live_routes(self.workers, offered_models(options.model))]
        if options.in_browser:  # serves files of the folder, but no link to a file elsewhere
            routes.append(Mount(IN_BROWSER, StaticFiles(directory=options.in_browser, html=True)))
        scripts = "\n".join((WEB / name).read_text("utf-8") for name in ("live.js", "instruments.js", "hints.js"))
        launch = partial(
            self.blocks.launch,
            server_name=f"[{options.host}]" if ":" in options.host else options.host,
            server_port=options.port,
            inbrowser=not options.no_open_browser,
            share=options.share,
            max_file_size=f"{options.max_upload_mb}mb",
            root_path=options.root_path,
            allowed_paths=[],
            strict_cors=True,
            prevent_thread_lock=True,
            quiet=True,
            footer_links=[],
            run_history=False,
            enable_monitoring=False,
            ssr_mode=False,
            pwa=False,
            mcp_server=False,
            theme=theme(),
            css=(WEB / "page.css").read_text("utf-8"),
            head=f"<script>\n{scripts}\n</script>",
            app_kwargs={"routes": routes, "middleware": middleware},
        )
        with own_network(options.share):
            try:
                _, address, shared = launch()
            except (ImportError, OSError, ValueError) as error:  # of httpx, for a proxy that it does not know
                if not options.share:
                    raise
                raise InputError(f"--share: cannot publish the page ({in_line(error)}); check the proxy") from error
        if shared:
            self.names.add(shared)
        return str(shared or address)

    def close(self) -> None:
        """Ends the live streams and the server."""
        self.workers.close()
        self.blocks.close(verbose=False)


def serve(options: PageOptions) -> int:
    """Serves the page until Ctrl-C, then returns 0. Raises InputError if it cannot be served or has no model."""
    try:
        with serving(options):
            while True:
                time.sleep(1)
    except KeyboardInterrupt:
        return 0


@contextmanager
def serving(options: PageOptions) -> Iterator[tuple[Page, str, Path]]:
    """A context with (page, its address, the folder of all files that it writes). The folder is removed afterwards."""
    options = with_source(options)
    options.check()
    model_meta(options.model)
    if options.in_browser:
        check_site(options.in_browser)
    check_address(options.host, options.port)
    with tempfile.TemporaryDirectory(prefix="steadyseg-", ignore_cleanup_errors=True) as folder:
        # Gradio's default is one folder for every user of the machine, /tmp/gradio, and it is never emptied.
        os.environ["GRADIO_TEMP_DIR"] = folder
        os.environ["GRADIO_ANALYTICS_MAX_EVENTS"] = "100"  # not 10,000: each event adds all of them up again
        share_arenas()  # before there are threads
        page = build_page(options)
        address = page.launch()
        try:
            announce(page, address)
            yield page, address, Path(folder)
        finally:
            page.close()


def with_source(options: PageOptions) -> PageOptions:
    """The options. A source in the model's place, as in `demo drive.mp4`, becomes the source of the default model.

    Raises InputError if `--source` names another source.
    """
    if not is_source(options.model):
        return options
    if options.source != PageOptions.source:
        raise InputError(
            f"two sources are given: {display_name(options.model)} and --source {display_name(options.source)}; "
            "keep one"
        )
    return replace(options, model=PageOptions.model, source=options.model)


def announce(page: Page, address: str) -> None:
    """Prints the address of the page, its model and backend, and all limits."""
    options = page.options
    print(f"SteadySeg at {address}  (Ctrl-C ends it)", flush=True)
    segmenter = page.workers.warm(method_settings(options.model))
    print(f"model {Path(options.model).name}, backend {segmenter.backend} on {segmenter.device}")
    for note in list_limits(model_meta(options.model)):
        print(f"note: {note}")
    if options.in_browser is not None:
        print(f"in the visitor's own browser: {address.rstrip('/')}/in-browser/")
    print(f"the tab Live plays {display_name(options.source)} too")
    if not options.local:
        print("note: whoever reaches this address can use the page")
        if not options.share:
            print("note: browsers give the camera only over HTTPS: put a proxy with a certificate before the page")
    sys.stdout.flush()


def build_page(options: PageOptions) -> Page:
    """Builds the page with its first model. Raises InputError if the checkpoint is missing."""
    import_gradio()
    import gradio as gr

    workers = LiveWorkers(options.max_sessions, SourceFeed(options.source).subscribe)
    sessions = Sessions(Path(gr.utils.get_upload_folder()))
    sessions.folder.mkdir(parents=True, exist_ok=True)
    blocks = build_blocks(options, workers, sessions)
    guard_events(blocks, sessions.folder)
    names = AllowedHosts(options.local, [options.host, *options.allow_host])
    # The queue runs at most two file jobs at a time. With `api_open=False`, only Stop bypasses it.
    blocks.queue(default_concurrency_limit=2, max_size=32, api_open=False)
    return Page(blocks, workers, sessions, names, options)


def import_gradio() -> None:
    """Imports Gradio without the type stubs that it writes beside its components at each import.

    They take half of the import's time. Gradio writes none for a class whose file is not found.
    """
    found = inspect.getfile

    def of_no_class_of_gradio(object: Any) -> str:
        if str(getattr(object, "__module__", "")).startswith("gradio."):
            raise OSError("no type stub is wanted")
        return found(object)

    inspect.getfile = of_no_class_of_gradio
    for name in [name for name in os.environ if name.startswith("GRADIO_") and name not in OWN]:
        del os.environ[name]  # as GRADIO_ALLOWED_PATHS, which opens folders; this page has flags of its own
    try:
        with own_network():
            import gradio  # noqa: F401
    finally:
        inspect.getfile = found


@contextmanager
def own_network(share: bool = False) -> Iterator[None]:
    """A context in which the page asks its own address without a proxy: Gradio does so by httpx, which obeys variables
    of the shell. With `share` the proxy is kept for all other addresses."""
    held = {name: value for name, value in os.environ.items() if name.lower() in NETWORK}
    for name in held:
        del os.environ[name]
    if share:
        given = [value for name, value in held.items() if name.lower() == "no_proxy"]
        os.environ |= held | dict.fromkeys(("NO_PROXY", "no_proxy"), ",".join((*given, *LOCAL_HOSTS)))
    try:
        yield
    finally:
        for name in [name for name in os.environ if name.lower() in NETWORK]:
            del os.environ[name]
        os.environ |= held


def theme() -> Any:
    """A theme with system fonts: browsers would request a font named by a string from the server, and a Google font
    from Google."""
    import gradio as gr

    plain, mono = [gr.themes.Font("sans-serif")], [gr.themes.Font("monospace")]
    return gr.themes.Default(primary_hue="blue", font=plain, font_mono=mono)


def check_address(host: str, port: int) -> None:
    """Raises InputError if the page cannot be served at this address."""
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
