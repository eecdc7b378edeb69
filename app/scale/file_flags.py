"""Options that stand in a file of the user's: they are flags of `steadyseg video`, and refused as those are."""

from collections.abc import Callable
from functools import cache

from app.parsing import parse
from app.video.flags import VideoJob, VideoOptions

Flags = tuple[tuple[str, str], ...]
"""(name, value) as they are written; `max_frames` is `max-frames`."""


def flag_reader(options: VideoOptions) -> Callable[[Flags], VideoJob]:
    """Reads flags over these options: the job without its source. InputError for what is no flag or has no such value.

    Parsed once for all lines that say the same (4 ms each).
    """

    @cache
    def read(flags: Flags) -> VideoJob:
        words = [word for name, value in flags for word in (f"--{name.strip().replace('_', '-')}", value.strip())]
        default = VideoJob("", options=options)
        return parse(VideoJob, ["source", *words], "steadyseg video", "", default) if words else default

    return read
