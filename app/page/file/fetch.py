"""Download of a video for the File tab, if `--allow-url` permits it: within limits, from public hosts only."""

import contextlib
import http.client
import ipaddress
import socket
import ssl
import string
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from steadyseg.app.sources.url import redact
from steadyseg.core.errors import InputError

PORTS = {"http": 80, "https": 443}
MAX_REDIRECTS = 3
TIMEOUT_S = 10.0
"""Time limit of every single read."""
FETCH_S = 600.0
"""Time limit of the whole file, redirections included; a server that sends a byte now and then is never silent."""
LOOK_S = 0.2
BLOCK = 2**18
GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
"""The range of public IPv6 addresses; outside it lie forms that carry an IPv4 address (64:ff9b::/96, ::/96) and
former local ones."""


def fetch(
    url: str,
    folder: Path,
    max_bytes: int,
    stop_asked: Callable[[], bool],
    resolve: Callable[..., list[tuple[Any, ...]]] = socket.getaddrinfo,
    max_s: float = FETCH_S,
) -> Path:
    """Downloads the file at `url` into `folder`. Raises InputError, without credentials, for anything but a public
    http(s) address with at most `max_bytes`, and where it is stopped or takes longer than `max_s`. The host's IP
    address is looked up once, checked and then connected to, so that a name which changes its address in between gains
    nothing. Redirections are checked in the same way."""
    deadline_s = time.monotonic() + max_s
    for _ in range(MAX_REDIRECTS + 1):
        parts = check_address(url)
        address = public_address(parts, resolve)
        with open_response(parts, address, lambda: stop_asked() or time.monotonic() > deadline_s) as answer:
            if answer.status in (301, 302, 303, 307, 308):
                url = urljoin(url, answer.headers.get("Location", ""))
                continue
            if answer.status != 200:
                raise InputError(f"{redact(url)}: the server answers {answer.status}")
            path = folder / (Path(parts.path).name[-40:].lstrip(".") or "video")
            return copy_body(answer, path, max_bytes, redact(url))
    raise InputError(f"{redact(url)}: more than {MAX_REDIRECTS} redirections")


def check_address(url: str) -> SplitResult:
    """The parts of an address. Raises InputError unless it has an allowed scheme and a host."""
    url = url.strip()
    try:
        parts = urlsplit(url)
        has_host = parts.hostname is not None and (parts.port or 1) > 0
        fetchable = has_host and parts.scheme.lower() in PORTS and url.isprintable()  # half a letter cannot be sent
    except ValueError:
        fetchable = False
    if not fetchable:
        raise InputError("not an address that can be fetched; expected http:// or https:// and a host")
    return parts


def public_address(parts: SplitResult, resolve: Callable[..., list[tuple[Any, ...]]]) -> tuple[str, int]:
    """(IP address, port) of the host. Raises InputError if any of its addresses is not public."""
    port = parts.port or PORTS[parts.scheme.lower()]
    try:
        addresses = [entry[4][0] for entry in resolve(parts.hostname, port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError) as error:
        raise InputError(f"{parts.hostname}: no such host") from error
    if not addresses or not all(is_public(ipaddress.ip_address(address)) for address in addresses):
        raise InputError(f"{parts.hostname}: is in a private network, which this page does not contact")
    return addresses[0], port


def is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """True for one host on the public internet; addresses that carry another one (6to4, Teredo) are not."""
    if not address.is_global or address.is_multicast:
        return False
    return address.version == 4 or (address in GLOBAL_UNICAST and address.sixtofour is None and address.teredo is None)


@contextlib.contextmanager
def open_response(
    parts: SplitResult, address: tuple[str, int], give_up: Callable[[], bool]
) -> Iterator[http.client.HTTPResponse]:
    """The response to GET, over a connection to exactly that address.

    Raises InputError if there is none, and from any read once `give_up` returns True.
    """
    host = str(parts.hostname)
    path = quote((parts.path or "/") + (f"?{parts.query}" if parts.query else ""), safe=string.punctuation)
    secure = parts.scheme.lower() == "https"
    connection = (http.client.HTTPSConnection if secure else http.client.HTTPConnection)(
        host, parts.port, timeout=TIMEOUT_S
    )
    done, gave_up = threading.Event(), threading.Event()

    def watch(line: socket.socket) -> None:
        while not done.wait(LOOK_S):
            if give_up():
                gave_up.set()
                with contextlib.suppress(OSError):  # it ended in this moment
                    socket.socket.shutdown(line, socket.SHUT_RDWR)  # its reader gets the end at once
                return

    try:
        line = socket.create_connection(address, TIMEOUT_S)
        if secure:
            context = ssl.create_default_context()
            line = context.wrap_socket(line, server_hostname=host, do_handshake_on_connect=False)
        connection.sock = line
        threading.Thread(target=watch, args=(line,), name="fetch", daemon=True).start()
        if isinstance(line, ssl.SSLSocket):
            line.do_handshake()  # watched too
        connection.request("GET", path, headers={"User-Agent": "SteadySeg"})
        yield connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        reason = "was given up" if gave_up.is_set() else f"gives no answer ({type(error).__name__})"
        raise InputError(f"{host}: {reason}") from error
    finally:
        done.set()
        connection.close()
    if gave_up.is_set():  # the end of a body without a length looks like a whole one
        raise InputError(f"{host}: was given up: it was stopped, or takes longer than {FETCH_S / 60:.0f} minutes")


def copy_body(answer: http.client.HTTPResponse, path: Path, max_bytes: int, shown: str) -> Path:
    """Writes the body to the file. Raises InputError as soon as it is too long."""
    written = 0
    with path.open("wb") as file:
        while block := answer.read1(BLOCK):
            written += len(block)
            if written > max_bytes:
                raise InputError(f"{shown}: has more than {max_bytes // 10**6} MB")
            file.write(block)
    return path
