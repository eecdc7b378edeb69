"""Access to FFmpeg through PyAV: opens containers within limits and gives their pictures as upright RGB."""

import re
import threading
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from steadyseg.app.opencv import opencv
from steadyseg.app.sources.source import MAX_PIXELS, check_size
from steadyseg.app.sources.times import DisplayTimes
from steadyseg.core.errors import InputError
from steadyseg.core.system.pictures import require_few_scans

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.sidedata.sidedata import SideData
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

SELF_CONTAINED_FORMATS = (
    "mov,mp4,matroska,webm,avi,mpegts,mpeg,mpegvideo,m4v,h264,hevc,obu,ivf,flv,asf,ogg,gif,apng,mjpeg,mpjpeg,mxf,nut,dv,"
    "yuv4mpegpipe,rm,wtv"
)
"""Formats with every byte in the one file. Playlists (HLS, DASH, concat, image patterns) are left out on purpose: they
name further files or addresses. FFmpeg would obey a hostile playlist under any file name.
"""

NO_TIME_STAMPS = 0x80
"""AVFMT_NOTIMESTAMPS of FFmpeg's avformat.h; a demuxer with this flag stamps frames at a guessed rate of 25 per
second."""
HDR = {16: "smpte2084", 18: "arib-std-b67"}
"""Transfer curves of HDR by FFmpeg's number (ITU-T H.273): PQ and HLG."""
FILE_OPTIONS = {"protocol_whitelist": "file", "format_whitelist": SELF_CONTAINED_FORMATS}
PROBE_US = {"analyzeduration": "2000000"}
"""Time for analysing an endless stream on opening; FFmpeg's 5 s would use up the whole time-out."""
NET = "http,https,tcp,tls,crypto"
PICTURES = "jpeg_pipe,png_pipe,webp_pipe,bmp_pipe"
"""Formats of single pictures, as cameras give them at an address."""
URL_OPTIONS = {
    "http": PROBE_US | {"protocol_whitelist": NET, "format_whitelist": f"{SELF_CONTAINED_FORMATS},hls,{PICTURES}"},
    "rtsp": PROBE_US | {"protocol_whitelist": "rtsp,rtsps,rtp,srtp,udp,tcp,tls,crypto", "rtsp_transport": "tcp"},
    "rtmp": PROBE_US | {"protocol_whitelist": "rtmp,rtmps,tcp,tls,crypto", "format_whitelist": "flv"},
    "udp": PROBE_US | {"protocol_whitelist": "udp", "format_whitelist": "mpegts"},
}
"""FFmpeg options by scheme.

An HLS playlist from the net may lead to the net only, never to a local file. RTSP runs over TCP: a wireless link loses
UDP packets, and each loss smears until the next key frame.
"""


def open_container(
    address: str, options: dict[str, str], timeout_s: float | None = None, max_pixels: int = MAX_PIXELS
) -> "InputContainer":
    """Opens an absolute path or URL; `timeout_s` limits opening and every single read. Raises av.error.FFmpegError.

    The decoder refuses frames of more than `max_pixels`, which may come at any time, before it takes memory for them.
    """
    import av

    timeout = None if timeout_s is None else (timeout_s, timeout_s)
    limit = {"max_pixels": str(max_pixels)}
    return av.open(address, mode="r", options=options | limit, timeout=timeout, metadata_errors="replace")


def first_bytes(url: str, timeout_s: float) -> bytes:
    """The first bytes, 1024 at most, of what an address by HTTP holds; empty if it cannot be read."""
    import av

    options = {"protocol_whitelist": NET, "format_whitelist": "data"}
    try:
        with av.open(url, format="data", options=options, timeout=(timeout_s, timeout_s)) as container:
            return bytes(next(container.demux()))
    except (av.error.FFmpegError, OSError, StopIteration):
        return b""


def video_stream(
    container: "InputContainer", name: str, low_delay: bool, max_pixels: int = MAX_PIXELS
) -> "VideoStream":
    """The first video stream of moving pictures. Raises InputError if there is none, or if its frames are too large."""
    from av.stream import Disposition

    moving = [one for one in container.streams.video if not one.disposition & Disposition.attached_pic]  # no cover art
    if not moving:
        still = container.streams.video
        kinds = sorted({one.type for one in container.streams if one not in still}) + ["a cover picture"] * bool(still)
        held = ", ".join(kinds) or "none"
        raise InputError(f"{name}: holds no video stream (streams: {held}); give a video file, camera or image folder")
    stream = moving[0]
    if stream.disposition & Disposition.dependent:
        raise InputError(f"{name}: a picture in {len(moving)} tiles; its name must end in .avif or .heic")
    if stream.codec_context is None:
        raise InputError(f"{name}: no decoder for its video; convert it: ffmpeg -i IN -c:v libx264 OUT.mp4")
    # Frame threads are the fastest, but each holds one frame back; a live picture must not be late.
    stream.thread_type = "SLICE" if low_delay else "AUTO"
    stream.codec_context.options = {"max_pixels": str(max_pixels)}  # options of `av.open` reach the probing only
    if stream.width and stream.height:
        check_size(name, stream.width, stream.height, max_pixels)
    return stream


def decode(
    container: "InputContainer",
    stream: "VideoStream",
    losses: Counter[str],
    stopped: threading.Event,
) -> Generator["VideoFrame", None, None]:
    """Decodes frames until the end, a read error (counted: "read_error") or `stopped`; damaged packets are counted."""
    import av

    packets, times = container.demux(stream), DisplayTimes(container, stream)
    while not stopped.is_set():
        packet: Packet[Any] | None
        try:
            packet = next(packets)
        except StopIteration:
            return
        except (av.error.FFmpegError, OSError):
            losses["read_error"] += 1
            packet = None  # flushes the frames that the decoder still holds
        if packet is not None:
            times.add(packet)
        for frame in _decode(stream, packet, losses):
            times.give(frame)
            yield frame
        if packet is None:
            return


def _decode(stream: "VideoStream", packet: "Packet[Any] | None", losses: Counter[str]) -> "list[VideoFrame]":
    import av

    try:
        if packet is not None and stream.codec_context.name == "mjpeg":
            require_few_scans(bytes(packet))
        frames = stream.decode(packet)
    except av.error.EOFError:  # already flushed
        return []
    except (av.error.FFmpegError, ValueError):
        losses["decode_error"] += 1
        return []
    for frame in frames:
        frame.time_base = stream.time_base  # flushed frames have no time base
    losses["corrupt_frame"] += sum(frame.is_corrupt for frame in frames)
    return frames


def to_rgb(frame: "VideoFrame", name: str) -> np.ndarray:
    """(H, W, 3) uint8 RGB, rotated and mirrored as the container's display matrix asks."""
    check_size(name, frame.width, frame.height)
    image = frame.to_ndarray(format="rgb24", threads=1)
    (a, b), (c, d) = display_matrix(frame)
    if a == d == 0 and b and c:
        image, a, d = opencv().transpose(image), c, b
    if a < 0 or d < 0:
        image = opencv().flip(image, 1 if d >= 0 else 0 if a >= 0 else -1)
    return image


def display_matrix(frame: "VideoFrame") -> tuple[tuple[int, int], tuple[int, int]]:
    """The display matrix ((a, b), (c, d)), in units of 1/65536: it moves pixel `(x, y)` to `(a x + c y, b x + d y)`, up
    to a shift."""
    from av.sidedata.sidedata import SideDataContainer

    # `frame.side_data` would make a reference cycle, which keeps the picture until a garbage collection.
    container = cast("Callable[[VideoFrame], Mapping[str, SideData]]", SideDataContainer)
    data = container(frame).get("DISPLAYMATRIX")
    if data is None:
        return (65536, 0), (0, 65536)
    a, b, _, c, d, *_ = np.frombuffer(bytes(data), np.int32).tolist()
    return (a, b), (c, d)


def picture_notes(container: "InputContainer", stream: "VideoStream", frame: "VideoFrame") -> tuple[str, ...]:
    """Differences between the file and its frames, in words."""
    (a, b), (c, d) = display_matrix(frame)
    upright, quarter_turn = b == c == 0, a == d == 0
    ratio = stream.sample_aspect_ratio
    notes = {
        "transparency is left out: the colours under it are segmented": is_transparent(stream, frame),
        "audio is not copied": bool(container.streams.audio),
        "only the first of its video streams is read": len(container.streams.video) > 1,
        f"turned clockwise by {-frame.rotation % 360} degrees as the file asks": frame.rotation
        and (upright or quarter_turn),
        "mirrored as the file asks": (upright and (a < 0) != (d < 0)) or (quarter_turn and (b < 0) == (c < 0)),
        f"the file asks for a turn by {frame.rotation} degrees, which is not done": not (upright or quarter_turn),
        "colours are reduced to 8 bits": max(part.bits for part in frame.format.components) > 8,
        f"HDR ({HDR.get(frame.color_trc)}) is shown without tone mapping, so paler than it was": frame.color_trc in HDR,
        f"pixels are {ratio} as wide as high and are kept so": ratio is not None and ratio not in (0, 1),
        "interlaced; both fields are kept in one frame": frame.interlaced_frame,
    }
    return tuple(note for note, applies in notes.items() if applies)


def is_transparent(stream: "VideoStream", frame: "VideoFrame") -> bool:
    """Returns True for frames with an alpha channel. FFmpeg gives one to each GIF and palette: their pixels count."""
    if frame.format.has_palette or stream.codec_context.name == "gif":
        return bool(frame.to_ndarray(format="rgba")[..., 3].min() < 255)
    own = any(part.is_alpha for part in frame.format.components)
    return own or stream.metadata.get("alpha_mode") == "1"  # VP8's and VP9's, which the decoder leaves out


def count_announced(container: "InputContainer", stream: "VideoStream") -> int | None:
    """The number of frames that the container announces, or None; without frames that an MP4's edit list hides."""
    if "mp4" in container.format.name and stream.frames:
        return sum(not entry.is_discard for entry in stream.index_entries)
    return stream.frames or None


STATING = ("matroska,webm", "flv")
"""Formats whose header states a duration. Others have frames announced, or a duration guessed from what is there."""
LENGTH = re.compile(r"(\d+):(\d+):(\d+(?:\.\d+)?)")
"""The tag DURATION of a stream of Matroska: hours, minutes and seconds."""


def stated_end_s(container: "InputContainer", stream: "VideoStream") -> float:
    """The time in seconds at which the video ends as its file states, 0 if unknown. The container's duration may be its
    sound's, so it counts for a video alone."""
    if container.format.name not in STATING or not container.duration:
        return 0.0
    end_s = container.duration / 1e6
    if tag := LENGTH.fullmatch(stream.metadata.get("DURATION", "")):
        hours, minutes, seconds = map(float, tag.groups())
        return min(end_s, 3600 * hours + 60 * minutes + seconds)
    return end_s if len(container.streams) == 1 else 0.0


def nominal_fps(container: "InputContainer", stream: "VideoStream", stamps_s: Sequence[float | None] = ()) -> float:
    """The announced frame rate; 25 if it is not plausible (0, or the 90000 of a clock taken for a rate).

    A browser's WebM announces no rate or its clock's, so the usual step of the first frames' stamps gives the rate. For
    raw H.264 and HEVC FFmpeg always announces 25, so the decoder's rate counts.
    """
    untimed = container.format.flags & NO_TIME_STAMPS
    steps_s = np.diff([stamp for stamp in stamps_s if stamp is not None])
    if rate_is_unknown(stream) and (steps_s > 0).any():
        middle_s = np.median(steps_s[steps_s > 0])
        return min(1000.0, 1 / float(steps_s[abs(steps_s - middle_s) <= middle_s / 2].mean()))
    own = (stream.codec_context.framerate,) if untimed else ()
    for rate in (*own, stream.average_rate, stream.guessed_rate, stream.base_rate):
        if rate is not None and 0 < rate < 1000 and not (rate == stream.average_rate and rate_is_unknown(stream)):
            return float(rate)
    return 25.0


def rate_is_unknown(stream: "VideoStream") -> bool:
    """Returns True without an average rate, and if it is one frame for each tick of the clock."""
    return not stream.average_rate or stream.average_rate * (stream.time_base or 0) == 1


def pixel_shape(stream: "VideoStream", frame: "VideoFrame") -> Fraction:
    """Width over height of a pixel of `to_rgb`; 1 where the file says nothing."""
    (a, _), (_, d) = display_matrix(frame)
    shape = Fraction(stream.sample_aspect_ratio or 1)
    return 1 / shape if a == d == 0 else shape
