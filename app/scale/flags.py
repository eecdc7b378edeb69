"""The flags of `steadyseg batch` and `steadyseg cameras`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import OmitArgPrefixes, Positional, arg

from app.video.flags import VideoOptions


@dataclass(frozen=True)
class EngineOptions:
    """Where workers run."""

    engine: Literal["local", "ray"] = "local"
    """local: processes of this machine; ray: actors, on this machine or on the cluster of --ray-address."""
    ray_address: str | None = None
    """HOST:PORT of a running Ray cluster, whose machines see sources, cameras and output folder under the same
    names."""


@dataclass(frozen=True)
class BatchJob:
    """Which videos are segmented, how, where the results go, and what computes."""

    sources: Positional[tuple[str, ...]]
    """Video files, folders of videos, image folders, patterns ("drives/**/*.mp4"), `street[:SEED[:FRAMES]]`, lists
    (.txt, a source a line) and tables (.csv: a column `source`, others named like flags of `steadyseg video`, and
    `name`)."""
    output: Annotated[Path, arg(aliases=["-o"])]
    """Folder of the results: a folder for each video, with report.json and frames.parquet. What is whole there is
    skipped."""
    videos: bool = False
    """Write video.mp4 for each."""
    masks: bool = False
    """Write label and uncertainty PNGs for each."""
    options: OmitArgPrefixes[VideoOptions] = field(default_factory=VideoOptions)
    placing: OmitArgPrefixes[EngineOptions] = field(default_factory=EngineOptions)
    max_concurrency: int | None = None
    """Videos at once; without it as many as there are cores and, by what the first video took, memory."""
    part: str | None = None
    """I/N: only the I-th of every N videos, from 0 on (0/4, 1/4, 2/4, 3/4), for machines that share a list and a
    folder."""
    retries: int = 2
    """How often a video is tried again whose worker died or met an error that is not the video's own."""


@dataclass(frozen=True)
class CamerasJob:
    """Which cameras are watched, and who may ask how they are."""

    cameras: Positional[Path]
    """TOML file: [options] as flags of `steadyseg video`, [defaults] of all cameras, and a [[camera]] with name and
    source for each; docs/scale.md has every key."""
    placing: OmitArgPrefixes[EngineOptions] = field(default_factory=EngineOptions)
    workers: int | None = None
    """Processes that share the cameras; as many as there are cores without it."""
    host: str = "127.0.0.1"
    """Address that the figures are served at (/metrics, for Prometheus); whoever reaches it can read them."""
    port: int = 9464
    """Its port; 0 takes a free one and says which."""
    alarms: Path | None = None
    """File that alarms are added to, a JSON object a line; stdout without it."""
    report: Path | None = None
    """JSON file for the figures of every camera at the end."""
    seconds: float | None = None
    """Stop after this time; Ctrl-C without it."""
