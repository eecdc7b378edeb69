"""Video from the net: RTSP cameras, HTTP streams and HTTP files, with time-outs and without showing credentials."""

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from steadyseg.app.sources.content import describe_content
from steadyseg.app.sources.ffmpeg import (
    NO_TIME_STAMPS,
    PICTURES,
    URL_OPTIONS,
    decode,
    first_bytes,
    nominal_fps,
    open_container,
    picture_notes,
    to_rgb,
    video_stream,
)
from steadyseg.app.sources.live import ATTEMPTS, FIRST_DELAY_S, LiveSource, Picture
from steadyseg.app.sources.source import SourceInfo
from steadyseg.app.sources.times import stamp_s
from steadyseg.app.sources.video_file import RecordedSource
from steadyseg.core.errors import InputError

if TYPE_CHECKING:
    from av.container import InputContainer

SCHEMES = ("rtsp", "rtsps", "http", "https", "rtmp", "rtmps", "udp")
LIKE_ADDRESS = re.compile(rf"[a-z][a-z0-9+.-]+:[/\\\\]|({'|'.join(SCHEMES)})(:|//)", re.IGNORECASE)
"""Beginning of a mistyped address, such as rtmp:/host/key. A file of such a name is written ./NAME."""
UDP = {"rtsp_transport": "udp"}
POLL_S = 0.5
"""Time between two requests for a single picture."""
TIMEOUT_S = 5.0
"""Time limit of opening and of every read: longer than the key-frame distance of usual cameras (1-4 s)."""


def open_url(
    url: str,
    *,
    timeout_s: float = TIMEOUT_S,
    attempts: int = ATTEMPTS,
    first_delay_s: float = FIRST_DELAY_S,
) -> RecordedSource | LiveSource:
    """Opens a recording if the server states a length, else a live source, which asks for a single picture again.

    The message of its InputError has no credentials.
    """
    container = connect(url, timeout_s)
    # Without a duration and a size in bytes, the stream's end means an interruption. Senders by RTMP make durations up.
    sized = container.duration or (container.format.name != "rtsp" and container.size > 0)
    if sized and not is_picture(container) and url.lower().startswith(("http", "rtsp")):
        return RecordedSource(container, redact(url))
    opened = [container]

    def connection(losses: Counter[str], stopped: threading.Event) -> StreamConnection:
        container = opened.pop() if opened else connect(url, timeout_s)
        if is_picture(container):
            return PolledPicture(container, redact(url), losses, stopped, lambda: connect(url, timeout_s))
        return StreamConnection(container, redact(url), losses, stopped)

    return LiveSource(connection, attempts, first_delay_s)


def require_separator(text: str) -> None:
    """Raises InputError for an address whose scheme lacks ://, and shows nothing of it: a key may be any part."""
    if "://" not in text and LIKE_ADDRESS.match(text):
        raise InputError("not an address: its scheme lacks :// behind it; expected scheme://host/path, or ./FILE")


def connect(url: str, timeout_s: float) -> "InputContainer":
    """Opens the container. Raises InputError with the redacted address and without its cause, since FFmpeg's errors
    contain the whole address."""
    import av

    try:
        scheme = urlsplit(url).scheme.lower()
    except ValueError as error:  # the message holds no part of the address
        raise InputError(f"not an address ({error}); expected {', '.join(SCHEMES)} and a host") from None
    if scheme not in SCHEMES:
        raise InputError(f"{redact(url)}: cannot read {scheme}://; expected {', '.join(SCHEMES)} or a path")
    began_s, options = time.monotonic(), URL_OPTIONS[scheme.removesuffix("s")]
    try:
        try:
            return open_container(url, options, timeout_s)
        except (av.error.FFmpegError, OSError):
            if "rtsp_transport" not in options or time.monotonic() - began_s >= timeout_s:
                raise
            return open_container(url, options | UDP, timeout_s)  # some cameras offer UDP alone
    except (av.error.FFmpegError, OSError) as error:
        late = time.monotonic() - began_s >= timeout_s  # FFmpeg's message differs from protocol to protocol
        words = "" if late or not scheme.startswith("http") else describe_content(first_bytes(url, timeout_s))
        if words:
            raise InputError(f"{redact(url)}: holds no readable video: it is {words}") from None
        reason = f"no answer within {timeout_s:g} s" if late else error.strerror or type(error).__name__
        reason += " by TCP and by UDP" * ("rtsp_transport" in options and not late)
    if url.count("@") > 1 or re.search("[?#/].*@", url.partition("://")[2]):
        reason += "; in a name or password, encode # as %23, / as %2F, ? as %3F and @ as %40"
    raise InputError(f"{redact(url)}: cannot be opened ({reason}); is the address right and the server up?")


SECRET = re.compile(r"((?:user|login|pass|pwd|token|key|secret|auth)[^/=?#]*=)[^/?#]*", re.IGNORECASE)
"""A name that announces a credential, and the rest of its path segment, as in /user=NAME_password=WORD_channel=1."""


def redact(url: str) -> str:
    """The address without credentials: user and password, query, fragment, and path segments that name a secret.

    Of every scheme but HTTP and UDP the path is hidden: a key may be any part of it, and a scheme may be mistyped.

    Passwords in configuration files are often not percent-encoded. So everything before the last `@` is hidden, even if
    a strict parser would end the host earlier. If the `@` may belong to a query, the whole query is hidden. Any text is
    accepted.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    before, at, rest = rest.rpartition("@")
    name_and_word = re.match(r"[^/?#:\[]*:[^/?#]*[^/?#0-9]", before)
    if re.search("[?#]", before) and not name_and_word:
        return f"{scheme}://***"
    place, query, _ = rest.partition("?")
    place, fragment, _ = place.partition("#")
    shown = SECRET.sub(r"\1***", place)
    if scheme.lower() not in ("http", "https", "udp"):
        shown = re.sub("/.*[^/].*", "/***", shown, flags=re.DOTALL)
    return f"{scheme}://{'***@' if at else ''}{shown}{'?***' if query or fragment else ''}"


def is_picture(container: "InputContainer") -> bool:
    """Returns True for a single picture."""
    return container.format.name in PICTURES.split(",")


class StreamConnection:
    """One opened live stream, which owns its container. Raises InputError if it holds no decodable video."""

    def __init__(
        self,
        container: "InputContainer",
        name: str,
        losses: Counter[str],
        stopped: threading.Event,
    ) -> None:
        self._container = container
        try:
            stream = video_stream(container, name, low_delay=True)
            self._frames = decode(container, stream, losses, stopped)
            first = next(self._frames, None)
            if first is None:
                raise InputError(f"{name}: gives no picture that can be decoded")
            height, width = to_rgb(first, name).shape[:2]
        except BaseException:
            container.close()
            raise
        self._first = first
        by_udp = UDP.items() <= dict(container.options).items()
        notes = (*picture_notes(container, stream, first), *["read by UDP, as TCP was refused: losses smear"] * by_udp)
        self.info = SourceInfo(name, width, height, nominal_fps(container, stream), length=None, live=True, notes=notes)

    def pictures(self) -> Iterator[Picture]:
        """Pictures with the stream's stamps, or stamped on arrival if its format has none (a camera's motion JPEG)."""
        untimed = self._container.format.flags & NO_TIME_STAMPS
        for frame in chain([self._first], self._frames):
            yield Picture(to_rgb(frame, self.info.name), time.monotonic() if untimed else stamp_s(frame))

    def close(self) -> None:
        self._frames.close()
        self._container.close()


class PolledPicture(StreamConnection):
    """A single picture at an address, such as a camera's snapshot, asked for again and again."""

    def __init__(
        self,
        container: "InputContainer",
        name: str,
        losses: Counter[str],
        stopped: threading.Event,
        connect: "Callable[[], InputContainer]",
    ) -> None:
        super().__init__(container, name, losses, stopped)
        self._again, self._losses, self._stopped = connect, losses, stopped
        note = f"a single picture, asked for every {POLL_S:g} s; each answer is a frame"
        self.info = replace(self.info, fps=1 / POLL_S, notes=(*self.info.notes, note))

    def pictures(self) -> Iterator[Picture]:
        """Pictures stamped on arrival, until the address fails."""
        yield Picture(to_rgb(self._first, self.info.name), time.monotonic())
        while not self._stopped.wait(POLL_S):
            try:
                one = StreamConnection(self._again(), self.info.name, self._losses, self._stopped)
            except InputError:
                self._losses["read_error"] += 1
                return
            yield Picture(to_rgb(one._first, self.info.name), time.monotonic())
            one.close()
