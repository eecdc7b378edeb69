"""The page behind nginx with TLS and a path, by the configuration in docs/how-to/serve.md."""

import getpass
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import av
import httpx
import pytest
from made.browser_visit import write_camera
from made.page_visit import GRADIO, launched, page_at, start_camera, stripes, visitor
from made.processes import free_port
from made.video import write_video
from made.waiting import PATIENCE_S, wait_for
from test_page_file import choose_file, download

pytestmark = [pytest.mark.long, *GRADIO]
USAGE = Path(__file__).parents[3] / "docs" / "how-to" / "serve.md"
NAME = "seg.example"


@pytest.fixture
def public(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address at nginx of a page that serves this machine alone."""
    for program in ("nginx", "openssl"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "cache"))
    port, inside = free_port(), free_port()
    with (
        page_at(model, port=inside, max_upload_mb=3, allow_host=(NAME,), root_path="/steadyseg"),
        nginx(tmp_path, port, inside),
    ):
        yield f"https://{NAME}:{port}/steadyseg/"


@contextmanager
def nginx(folder: Path, port: int, inside: int) -> Iterator[None]:
    """nginx with the lines of docs/how-to/serve.md, but for ports, the certificate and the size of uploads."""
    certificate, key = folder / "seg.pem", folder / "seg.key"
    words = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={NAME}"]
    words += ["-out", str(certificate), "-keyout", str(key)]
    subprocess.run(["openssl", "req", *words], check=True, capture_output=True)
    (block,) = re.findall("```nginx\n(.*?)```", USAGE.read_text(), re.DOTALL)
    for documented, here in (
        ("443", f"127.0.0.1:{port}"),
        ("127.0.0.1:7860", f"127.0.0.1:{inside}"),
        ("/etc/ssl/seg.pem", str(certificate)),
        ("/etc/ssl/seg.key", str(key)),
        ("477m", "3100k"),
    ):
        assert block.count(documented) == 1
        block = block.replace(documented, here)
    places = "".join(
        f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    conf = folder / "nginx.conf"
    first = f"daemon off; user {getpass.getuser()}; pid {folder}/pid; events {{}}"
    conf.write_text(f"{first}\nhttp {{\naccess_log off;\n{places}{block}}}\n")
    with subprocess.Popen(["nginx", "-p", str(folder), "-c", str(conf), "-e", str(folder / "log")]) as server:
        try:
            wait_for(lambda: answers(port))
            yield
        finally:
            server.terminate()


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_camera_upload_and_download_cross_the_proxy(public: str, playwright: Any, tmp_path: Path) -> None:
    camera = write_camera(tmp_path / "moving.mjpeg", stripes(50))
    chromium = launched(playwright, camera, f"--host-resolver-rules=MAP {NAME} 127.0.0.1")
    video = write_video(tmp_path / "stripes.mp4", stripes(30))
    with visitor(chromium, public, ignore_https_errors=True) as page:
        start_camera(page, 5)
        page.locator(".stage [data-do=camera]").first.click()
        choose_file(page, video)
        page.locator("#report").get_by_text("mean confidence").wait_for()
        page.wait_for_function("document.querySelector('#video video')?.currentTime > 0.1")
        with av.open(str(download(page, "download-result"))) as container:
            assert sum(1 for _ in container.decode(video=0)) == 30
    chromium.close()


def test_the_proxy_passes_on_what_the_guard_refuses_by(public: str) -> None:
    port = httpx.URL(public).port
    with httpx.Client(base_url=f"https://127.0.0.1:{port}/steadyseg/", verify=False) as client:
        ours = {"Host": f"{NAME}:{port}"}
        assert client.get("config", headers=ours).status_code == 200
        assert client.get("config", headers={"Host": "evil.example"}).status_code == 421
        foreign = {**ours, "Origin": "https://evil.example"}
        assert client.post("gradio_api/queue/join", headers=foreign, json={}).status_code == 403
        assert client.post("gradio_api/upload", headers=ours, content=bytes(3_500_000)).status_code == 413


def test_the_page_judges_an_upload_before_its_end_and_nginx_keeps_none(public: str, tmp_path: Path) -> None:
    """Otherwise nginx would first write the whole body to its disk, from anybody."""
    port = httpx.URL(public).port or 0
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    head = f"POST /steadyseg/gradio_api/upload HTTP/1.1\r\nHost: {NAME}:{port}\r\nOrigin: https://evil.example\r\n"
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as plain, context.wrap_socket(plain) as wire:
        wire.sendall(f"{head}Content-Length: 3000000\r\n\r\n".encode() + bytes(100_000))
        assert wire.recv(4096).split()[1] == b"403", "an answer although most of the body is missing"
    assert not list((tmp_path / "client_body").iterdir())
