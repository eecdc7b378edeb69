"""What the page answers to whom: names, sites, addresses, lengths, and what a job may open. Over real HTTP."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from made.page_visit import GRADIO, event_of

from steadyseg.app.page.guard import ADDRESSES, MAX_EVENT, MAX_PICTURE
from steadyseg.app.page.server import Page
from steadyseg.core.system.hosts import AllowedHosts

pytestmark = [pytest.mark.slow, *GRADIO]
KEY = "a" * 32
REFUSED = re.compile(
    "/(docs|docs/oauth2-redirect|redoc|openapi.json|login/?|logout|svelte|static|assets|pwa_icon(/.*)?|manifest.json|monitoring.*"
    "|gradio_api/(user|login_check|token|dev/reload|runs|run-history/.*|deep_link|info|openapi.json|custom_component/.*"
    "|proxy=.*|file/.*|file=.*|stream/.*|run/.*|api/.*|call/.*|component_server|process_recording|profiling/.*"
    "|(undo-)?vibe-.*)/?)"
)
"""Addresses of Gradio that the page does without, whole or but for the forms that ADDRESSES names."""


def test_other_names_and_other_sites_get_nothing(client: httpx.Client) -> None:
    own = client.base_url.netloc.decode()
    asked = [
        ("GET", "/config"),
        ("POST", "/gradio_api/upload"),
        ("POST", "/gradio_api/queue/join"),
        ("POST", f"/live/{KEY}"),
    ]
    for method, path in asked:
        for status, headers in (
            (421, {"host": "evil.example"}),
            (421, {"host": "["}),
            (421, {"host": "192.168.1.7"}),
            (403, {"origin": "http://evil.example"}),
            (403, {"origin": "null"}),
            (403, {"origin": "http://127.0.0.1:1"}),
        ):
            assert client.request(method, path, headers=headers).status_code == status, (path, headers)
    assert client.get("/config", headers={"origin": f"http://{own}"}).status_code == 200


def test_a_page_for_others_answers_to_figures_and_to_the_names_it_was_given() -> None:
    everyone = AllowedHosts(local=False, more=["0.0.0.0", "Seg.example"])
    everyone.add("https://1234.gradio.live/")
    for host in ("192.168.1.7:7860", "[fe80::1]:7860", "seg.example", "1234.gradio.live", "localhost:1"):
        assert host in everyone, host
    for host in ("evil.example", "", "[", "seg.example.evil.example"):
        assert host not in everyone, host


def test_every_route_of_gradio_is_known(served: tuple[Page, str]) -> None:
    """A newer Gradio's new route fails here until someone has looked at it."""
    unknown = []
    for route in served[0].blocks.app.routes:
        sample = re.sub(r"\{[^}]*\}", KEY, str(getattr(route, "path", "")))
        methods = getattr(route, "methods", None) or {"GET"}
        listed = any(methods & set(some) and re.fullmatch(known, sample) for some, known in ADDRESSES)
        if not listed and not REFUSED.fullmatch(sample) and sample:
            unknown.append((sorted(methods), sample))
    assert not unknown


def test_what_the_page_does_not_use_is_not_there(client: httpx.Client) -> None:
    for method, path in (
        ("POST", "/gradio_api/process_recording"),
        ("POST", "/gradio_api/vibe-edit"),
        ("POST", f"/live/{'A' * 32}"),  # no key that a browser draws
        ("GET", "/gradio_api/deep_link"),
        ("GET", "/gradio_api/proxy=http://127.0.0.1:1/"),
        ("GET", "/gradio_api/file=http://127.0.0.1:1/"),
        ("GET", "/docs"),
        ("GET", "/gradio_api/info"),
        ("POST", "/gradio_api/call/run_upload"),
        ("PUT", "/"),
        ("GET", "/nothing"),
    ):
        assert client.request(method, path).status_code == 404, path


def test_answers_forbid_frames_and_foreign_content_and_name_no_folder(client: httpx.Client, model: str) -> None:
    page = client.get("/")
    policy = page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy and "http" not in policy and page.headers["x-frame-options"] == "DENY"
    assert str(Path(model).parent) not in client.get("/config").text + page.text


def test_bodies_have_a_length_and_a_limit(client: httpx.Client) -> None:
    assert client.post(f"/live/{KEY}", content=bytes(MAX_PICTURE + 1)).status_code == 413
    assert client.post("/gradio_api/queue/join", content=bytes(MAX_EVENT + 1)).status_code == 413
    assert client.get("/gradio_api/upload_progress", params={"upload_id": "x" * 1000}).status_code == 414
    assert client.post(f"/live/{KEY}", content=iter([b"x"])).status_code == 411
    assert client.post("/gradio_api/upload", files={"files": ("a.mp4", bytes(3_200_000))}).status_code == 413


@pytest.mark.parametrize("name", ["x" * 41, "a/b", "", "ä", "\ud800", None, ["a"]])
def test_an_event_names_its_session_in_plain_letters(client: httpx.Client, name: object) -> None:
    event = json.dumps({"data": [], "fn_index": 0, "session_hash": name})
    answer = client.post("/gradio_api/queue/join", content=event, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()) == (422, {"error": "the page cannot read that"})


def test_a_job_opens_what_was_uploaded_and_nothing_else(client, served, tmp_path):
    asked: list[str] = []

    class Inside(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

    with HTTPServer(("127.0.0.1", 0), Inside) as inside:
        threading.Thread(target=inside.serve_forever, daemon=True).start()
        (tmp_path / "mine.png").write_bytes(b"x")
        for path in (f"http://127.0.0.1:{inside.server_port}/film.mp4", str(tmp_path / "mine.png"), "street:1:5", "0"):
            said = run_job(client, served[0], path)
            assert "process_completed" in said and '"success":false' in said.replace(" ", ""), said
        inside.shutdown()
    assert not asked


def test_no_input_of_any_event_makes_the_page_fetch_an_address(client, served, monkeypatch):
    """Gradio's own download stands behind every component; here it records what it was asked for."""
    fetched: list[str] = []

    async def record(url: str, cache_dir: str) -> str:
        fetched.append(url)
        raise ValueError("fetched")

    monkeypatch.setattr("gradio.processing_utils.async_ssrf_protected_download", record)
    file = {"path": "http://203.0.113.7/film.mp4", "is_stream": False, "meta": {"_type": "gradio.FileData"}}
    streamed = file | {"is_stream": True}
    events = [one for one in served[0].blocks.config["dependencies"] if one["inputs"] and one["backend_fn"]]
    assert len(events) >= 4
    for event in events:
        for position in range(len(event["inputs"])):
            for value in (file, streamed, [streamed], {"a": [{"b": file}]}):
                data = [None] * len(event["inputs"])
                data[position] = value
                said = run_event(client, {"data": data, "fn_index": event["id"], "session_hash": "made-up"})
                assert '"success":false' in said.replace(" ", "") and not fetched, (event["id"], position, value)


def run_event(client: httpx.Client, event: dict[str, Any]) -> str:
    """All messages of the queue about one event."""
    joined = client.post("/gradio_api/queue/join", json=event)
    assert joined.status_code == 200, joined.text
    return client.get("/gradio_api/queue/data", params={"session_hash": event["session_hash"]}).text


def test_what_gradio_cannot_read_is_refused_and_no_value_of_a_visitor_is_logged(client, served, capfd):
    for value in (b"NaN", b'"\\ud800"'):
        body, kind = (
            b'{"data": %b, "fn_index": 0, "session_hash": "made-up"}' % value,
            {"content-type": "application/json"},
        )
        answer = client.post("/gradio_api/queue/join", content=body, headers=kind)
        assert (answer.status_code, answer.json()) == (422, {"error": "the page cannot read that"})
    said = run_job(client, served[0], "/secret-film.mp4")
    assert '"success":false' in said.replace(" ", "")
    logged = capfd.readouterr().err
    assert re.fullmatch(r"(page: \w+ in \w+\n){2}", logged)


def run_job(client: httpx.Client, page: Page, path: str) -> str:
    """What the queue says about a job of the tab File on a made-up file."""
    event = event_of(page, "start", "made-up-" + str(abs(hash(path))))
    event["data"][0] = {"path": path, "is_stream": True, "meta": {"_type": "gradio.FileData"}}
    return run_event(client, event)
