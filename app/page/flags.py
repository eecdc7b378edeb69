"""The flags of `steadyseg demo`. Nothing heavy is imported here, so that help is instant."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from steadyseg.core.errors import InputError
from steadyseg.core.system.hosts import LOCAL_HOSTS
from steadyseg.runtime.options import DEFAULT_MODEL


@dataclass(frozen=True)
class PageOptions:
    """The page: its first network, its address, and its limits for visitors."""

    model: Positional[Annotated[str, arg(metavar="MODEL")]] = DEFAULT_MODEL
    """The page's first model: pretrained name, .safetensors file, or .onnx file of `export --stateful` or `wrap`. Or
    the source, as in `demo drive.mp4`."""
    source: str = "street"
    """File, camera index, address or street of this machine that the tab Live can play besides the browser's camera."""
    host: str = "127.0.0.1"
    """Address to serve at. Browsers give the camera only to 127.0.0.1 or over HTTPS, which a proxy provides."""
    port: int = 7860
    """Port to serve at."""
    no_open_browser: bool = False
    """Serve the page without opening a browser at its address."""
    max_upload_mb: int = 500
    """Largest file that the tab File takes."""
    max_sessions: int = 4
    """Live streams at once; further visitors wait for a place."""
    share: bool = False
    """Publish the page for 72 hours at an address of gradio.live: everyone who knows the address can use this
    machine."""
    allow_host: tuple[str, ...] = ()
    """Further host names of the page besides this machine's own, such as a proxy's name."""
    root_path: str = ""
    """Path under which a proxy publishes the page, such as /steadyseg; the proxy removes it from the requests it passes
    on."""
    in_browser: Path | None = None
    """Folder of `steadyseg export MODEL --target web -o DIR`, to serve at /in-browser/ with the headers that threads
    in a browser need."""

    def check(self) -> None:
        """Raises InputError for values out of range."""
        if not self.source.strip():
            raise InputError(f"--source {self.source!r} is empty; expected a file, camera number, address or street")
        if not 1 <= self.port <= 65_535:
            raise InputError(f"--port must lie in 1..65535, got {self.port}")
        if not 1 <= self.max_upload_mb <= 100_000:
            raise InputError(f"--max-upload-mb must lie in 1..100000, got {self.max_upload_mb}")
        if not 1 <= self.max_sessions <= 64:
            raise InputError(f"--max-sessions must lie in 1..64, got {self.max_sessions}")
        if not re.fullmatch(r"(/[\w.~-]+)*", self.root_path, re.ASCII):
            raise InputError(
                f"--root-path must be a path such as /steadyseg, without a slash at its end, got {self.root_path!r}"
            )

    @property
    def local(self) -> bool:
        """True if only this machine can reach the page."""
        return self.host in LOCAL_HOSTS and not self.share
