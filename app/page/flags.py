"""What `steadyseg demo` was started with."""

from dataclasses import dataclass
from pathlib import Path

from core.errors import InputError

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class PageOptions:
    """The flags of the command, as the page needs them."""

    model: str
    host: str = "127.0.0.1"
    port: int = 7860
    source: str | None = None
    """What the Live tab offers to play besides the camera: anything that `steadyseg video` reads."""
    max_upload_mb: int = 500
    max_sessions: int = 4
    """Live streams at once; further visitors are told to wait."""
    allow_url: bool = False
    share: bool = False
    ssl_certfile: Path | None = None
    ssl_keyfile: Path | None = None

    def check(self) -> None:
        """Raises InputError for values that cannot be served."""
        if not 1 <= self.max_upload_mb <= 100_000:
            raise InputError(f"--max-upload-mb must lie in 1..100000, got {self.max_upload_mb}")
        if not 1 <= self.max_sessions <= 64:
            raise InputError(f"--max-sessions must lie in 1..64, got {self.max_sessions}")
        if (self.ssl_certfile is None) != (self.ssl_keyfile is None):
            raise InputError("HTTPS needs both --ssl-certfile and --ssl-keyfile")
        for flag, path in (("ssl-certfile", self.ssl_certfile), ("ssl-keyfile", self.ssl_keyfile)):
            if path is not None and not path.is_file():
                raise InputError(f"--{flag} {path}: no such file")

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the page."""
        return self.host in LOCAL_HOSTS and not self.share
