"""Options in a user's file: flags of `steadyseg video`, with the same checks."""

from collections.abc import Callable
from functools import cache

from app.parsing import parse
from app.video.flags import VideoJob, VideoOptions

Flags = tuple[tuple[str, str], ...]
"""(name, value) as written; `max_frames` and `max-frames` are the same."""


def flag_reader(options: VideoOptions) -> Callable[[Flags], VideoJob]:
    """Returns a function that parses flags on top of these options, into a job without source.

    Raises InputError for unknown flags and values. Equal lines are parsed once (4 ms each).
    """

    @cache
    def read(flags: Flags) -> VideoJob:
        words = [word for name, value in flags for word in (f"--{name.strip().replace('_', '-')}", value.strip())]
        default = VideoJob("", options=options)
        return parse(VideoJob, ["source", *words], "steadyseg video", "", default) if words else default

    return read
