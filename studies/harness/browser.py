"""A headless Chromium with a made camera, for the study and the tests that drive the page."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.core.errors import InputError
from steadyseg.seg.street.drive import Street

CAMERA_FRAMES, CAMERA_HZ = 250, 25
BROWSER_FLAGS = ("--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync")
CAMERA_FLAGS = ("--disable-gpu", "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream")


def launch_chromium(playwright: Any, camera: Path, *flags: str) -> Any:
    """A headless Chromium whose camera plays that file. Raises InputError where there is none."""
    return launch_bare_chromium(playwright, *CAMERA_FLAGS, f"--use-file-for-fake-video-capture={camera}", *flags)


def launch_bare_chromium(playwright: Any, *flags: str) -> Any:
    """A headless Chromium without a camera. Raises InputError where there is none."""
    own = playwright.chromium.executable_path
    names = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    found = next(filter(None, names), own if Path(own).is_file() else None)
    if found is None:
        raise InputError("no Chromium is found: `.venv/bin/playwright install --with-deps chromium` brings one")
    return playwright.chromium.launch(executable_path=found, args=[*BROWSER_FLAGS, *flags])


def street_camera(path: Path, frames: int = CAMERA_FRAMES) -> Path:
    """A drive down the street as Chromium's camera."""
    street = Street(seed=7, height=360, width=480, fps=CAMERA_HZ)
    return write_camera(path, (frame.image for frame in street.frames(frames)))


def write_camera(path: Path, images: Iterable[np.ndarray]) -> Path:
    """Motion JPEG, which Chromium plays as its camera, over and over."""
    import av

    with av.open(str(path), "w", format="mjpeg") as container:
        stream = container.add_stream("mjpeg", rate=CAMERA_HZ, options={"q:v": "3"})
        for image in images:
            if not stream.codec_context.is_open:
                stream.height, stream.width, stream.pix_fmt = *image.shape[:2], "yuvj420p"
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image)))
        container.mux(stream.encode())
    return path
