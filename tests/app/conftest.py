"""The page under test, once for all its tests: a small model, a server in this process, a browser with a camera."""

import dataclasses
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import torch
from made.browser_visit import write_camera
from made.page_visit import launched, page_at, stripes
from made.shared import made_once
from made.waiting import PATIENCE_S
from made.worlds import world_record, world_tensors
from PIL import Image

from steadyseg.app.cli import main
from steadyseg.app.in_browser import site as site_writer
from steadyseg.app.in_browser.runtime import cache_path
from steadyseg.app.page.server import Page
from steadyseg.core.classes import CAMVID
from steadyseg.core.method import Method, settings
from steadyseg.core.model.checkpoint import CheckpointMeta, save_checkpoint
from steadyseg.seg.networks.build import build_network
from steadyseg.seg.options import UNetOptions


@pytest.fixture(scope="session", autouse=True)
def heard_interrupts() -> None:
    """A shell's background job ignores SIGINT, one of `nohup` SIGHUP, and so would every command that a test starts."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An untrained width-4 network as a checkpoint, its logits stretched so that it is surer here than there.

    Calibrated for vq-dnn as it runs by default only; anything that it sees is novel to it.
    """
    path = tmp_path_factory.mktemp("model") / "tiny.safetensors"
    small_checkpoint(path, world_record("dec9"))
    return str(path)


DEFAULT = Method("vq-dnn", tau=1.25, motion=True, average="geometric")
PUBLISHED = Method("vq-dnn", tau=1.25)


def small_checkpoint(path: Path, world: dict[str, Any], dropout: float = 0.5, method: Method = DEFAULT) -> None:
    """`world`: what it knows of its own; `method`: the one with a fitted temperature."""
    torch.manual_seed(0)
    options = dataclasses.asdict(UNetOptions(channels=4, dropout=dropout))
    tensors = build_network("unet", options, len(CAMVID)).state_dict()
    tensors["head.weight"] *= 40
    mean_std = {"mean": (0.41, 0.42, 0.43), "std": (0.3, 0.3, 0.3)}
    sets = {"conformal": {"coverage": 0.9, "lac": 0.9}}
    calibration = {"vq-dnn": {**settings(method), "temperature": 3.0, **sets}}
    meta = CheckpointMeta(
        "unet",
        options,
        CAMVID,
        height=96,
        width=128,
        calibration=calibration,
        licence="free to test",
        familiarity=world,
        **mean_std,
    )
    save_checkpoint(path, tensors | world_tensors("dec9", 4), meta)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Gradio keeps uploads and results."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def served(model: str, cache: Path) -> Iterator[tuple[Page, str]]:
    """(the page, its address), served by this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", str(cache))
        with page_at(model, max_upload_mb=3) as both:
            yield both


@pytest.fixture(scope="session")
def address(served: tuple[Page, str]) -> str:
    return served[1]


@pytest.fixture
def client(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, timeout=PATIENCE_S) as opened:
        yield opened


@pytest.fixture(scope="module")
def playwright() -> Iterator[Any]:
    """For a module: its event loop runs until it ends, and beside it no other test could run one."""
    from playwright.sync_api import sync_playwright

    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))  # browsers inherit it: the core of a worker is not for them
    with sync_playwright() as started:
        os.sched_setaffinity(0, own)
        yield started


@pytest.fixture(scope="module")
def browser(playwright: Any, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium, whose camera shows CamVid's val drive where it is there, else stripes that wander."""
    drive = Path(request.config.getoption("--data")) / "camvid" / "val"
    paths = sorted(drive.glob("*.png"))[:40]
    images = [np.asarray(Image.open(path).convert("RGB").resize((160, 120))) for path in paths] or stripes(50)
    chromium = launched(playwright, write_camera(tmp_path_factory.mktemp("camera") / "moving.mjpeg", images))
    yield chromium
    chromium.close()


@pytest.fixture(scope="module")
def still_browser(playwright: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium, whose camera shows one picture for ever: what changes on the page, a control has changed."""
    chromium = launched(playwright, write_camera(tmp_path_factory.mktemp("camera") / "still.mjpeg", stripes(1) * 25))
    yield chromium
    chromium.close()


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of `steadyseg export --target web` of a small network; skips where onnxruntime-web is missing."""
    if not cache_path().is_file():
        pytest.skip(
            f"onnxruntime-web is not kept here ({cache_path()}): python -m steadyseg.app.in_browser.runtime fetches it"
        )
    return made_once("web", write_web) / "site"


def write_web(home: Path) -> None:
    """`plain.safetensors` and its `site`."""
    home.mkdir()
    of_stripes = {"scores": np.linspace(14.552, 14.566, 20).tolist(), "energy_median": -6.0, "energy_rare": -5.0}
    world = world_record("dec9") | of_stripes
    small_checkpoint(home / "plain.safetensors", world, dropout=0.0, method=PUBLISHED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site_writer, "SAMPLE_SECONDS", 2)  # the street draws 17 frames a second
        assert main(["export", str(home / "plain.safetensors"), "--target", "web", "-o", str(home / "site")]) == 0
