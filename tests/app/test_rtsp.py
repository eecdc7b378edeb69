"""A real RTSP server, GStreamer's, killed in the middle of a stream and started again with pictures of another size."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from made.rtsp.proxy import Proxy
from made.rtsp.served import SYSTEM_PYTHON, Server, free_port, served

from steadyseg.app.sources.url import open_url


@pytest.fixture
def camera() -> Iterator[tuple[Server, Proxy]]:
    needed = "import gi; gi.require_version('GstRtspServer', '1.0'); from gi.repository import GstRtspServer"
    if (
        not Path(SYSTEM_PYTHON).exists()
        or subprocess.run([SYSTEM_PYTHON, "-c", needed], capture_output=True).returncode
    ):
        pytest.skip("needs GStreamer's RTSP server (tests/made/rtsp/server.py says which packages)")
    with served() as both:
        yield both


@pytest.mark.slow
def test_a_camera_that_is_killed_and_returns_with_another_size(camera: tuple[Server, Proxy]) -> None:
    server, proxy = camera
    sizes: list[tuple[int, int]] = []
    streams = [0]
    with open_url(f"rtsp://127.0.0.1:{proxy.port}/street", timeout_s=2, first_delay_s=0.1) as source:
        for frame in source:
            if frame.discontinuity:
                sizes.append(frame.image.shape[:2])
                streams.append(0)
            streams[-1] += 1
            if streams[1:] == [5]:
                server.kill()
                server.start()
                server.change_size()
            elif streams[2:] == [5]:
                proxy.cut()
            elif streams[3:] == [5]:
                break
    assert sizes == [(360, 640), (270, 480), (270, 480)]
    assert source.losses["reconnect"] == 2 and source.losses["size_change"] == 1


@pytest.mark.slow
def test_a_camera_that_offers_udp_alone_is_read(camera: tuple[Server, Proxy]) -> None:
    server = Server(free_port(), "UDP")
    try:
        with open_url(f"rtsp://127.0.0.1:{server.port}/street") as source:
            assert source.info.notes == ("read by UDP, as TCP was refused: losses smear",)
            assert next(iter(source)).image.shape[1] in (480, 640)
    finally:
        server.kill()
