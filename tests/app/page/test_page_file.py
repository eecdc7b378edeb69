"""The tab File, as a visitor's browser sees it: from a file to what can be kept of it, and what is refused."""

import json
import zipfile
from pathlib import Path
from typing import Any

import av
import pytest
from made.page_visit import GRADIO, stripes, visitor, wait_until_ready
from made.video import write_video
from made.waiting import wait_for

pytestmark = [pytest.mark.slow, *GRADIO]


def choose_file(page: Any, path: Path) -> None:
    page.get_by_role("tab", name="File").click()
    page.locator("#upload input[type=file]").set_input_files(path)
    page.locator("#upload").get_by_text(path.stem[:6]).first.wait_for()
    page.locator("#start").click()


def download(page: Any, button: str) -> Path:
    with page.expect_download() as kept:
        page.locator(f"#{button}").click()
    return Path(kept.value.path())


def test_a_video_plays_in_the_page_and_everything_can_be_kept(browser, address, cache, tmp_path):
    video = write_video(tmp_path / "stripes.mp4", stripes(30))
    with visitor(browser, address) as page:
        page.get_by_role("tab", name="File").click()
        page.locator("#keep-masks input").click()
        page.get_by_label("Network on").click()
        page.get_by_role("option", name="every 3rd frame").click()
        choose_file(page, video)
        page.locator("#report").get_by_text("mean confidence").wait_for()
        page.wait_for_function("document.querySelector('#video video')?.currentTime > 0.1")
        size = page.evaluate(
            "(v => [v.readyState > 1, v.videoWidth, v.videoHeight])(document.querySelector('#video video'))"
        )
        with av.open(str(download(page, "download-result"))) as container:
            assert sum(1 for _ in container.decode(video=0)) == 30
        with zipfile.ZipFile(download(page, "download-masks")) as archive:
            names = archive.namelist()
            assert len(names) == 61 and {"classes.csv", "000029_uncertainty.png"} <= set(names)
        record = json.loads(download(page, "download-report").read_text())
        assert len(list(cache.glob("session-*/*"))) == 3
    assert size == [True, 320, 170]
    assert (record["source"], record["frames"], record["dropped"]) == ("stripes.mp4", 30, 0)
    assert record["network_frames"] < 30
    wait_for(lambda: not list(cache.glob("session-*")))
    wait_for(lambda: not list(cache.rglob("stripes*")))


HOSTILE = {
    "empty.mp4": (b"", "empty"),
    "renamed.mp4": (b"<img src=x onerror=alert(1)> is not a video\n" * 100, "not a readable video"),
    "archive.mkv": (b"PK\x03\x04" + bytes(2000), "not a readable video"),
}


def test_hostile_uploads_get_one_line_and_the_page_lives_on(browser: Any, address: str, tmp_path: Path) -> None:
    from PIL import Image

    Image.fromarray(stripes(1)[0]).save(tmp_path / "picture.png")
    sparse = tmp_path / "sparse.mp4"
    with sparse.open("wb") as file:
        file.truncate(2 * 2**30)
    with visitor(browser, address) as page:
        page.get_by_role("tab", name="File").click()
        for name, (content, expected) in HOSTILE.items():
            (tmp_path / name).write_bytes(content)
            choose_file(page, tmp_path / name)
            message = page.get_by_text(expected).last
            message.wait_for()
            assert "/" not in message.inner_text().replace("mp4, mkv", "")
            page.locator("#upload").get_by_label("Clear").click()
            page.reload()
            wait_until_ready(page)
            page.get_by_role("tab", name="File").click()
        page.locator("#upload input[type=file]").set_input_files(sparse)
        page.get_by_text("exceed the maximum").first.wait_for()
        page.reload()
        wait_until_ready(page)
        choose_file(page, tmp_path / "picture.png")
        page.locator("#picture img").wait_for()
        assert page.locator("#picture img").evaluate("i => i.naturalWidth") == 320


def test_the_street_is_measured_while_it_plays_and_can_be_stopped(browser: Any, address: str) -> None:
    with visitor(browser, address) as page:
        page.get_by_role("tab", name="File").click()
        page.locator("#street").click()
        page.locator("#progress").get_by_text("s left").wait_for()
        page.locator("#preview img").wait_for()
        page.locator("#learned svg rect").first.wait_for(state="attached")
        assert "accuracy so far" in page.locator("#learned").inner_text()
        page.locator("#stop").click()
        page.locator("#progress").get_by_text("stopped").wait_for()
        page.locator("#report").get_by_text("calibration error (ECE)").wait_for()
        assert not page.locator("#stop").is_visible()


def test_words_are_explained_and_the_street_plays_without_a_camera(browser: Any, address: str) -> None:
    with visitor(browser, address) as page:
        label = page.locator("#mode label").filter(has_text="MC dropout (bnn)")
        label.hover()
        assert label.get_attribute("title").startswith("The mean of several forward passes with dropout on")
        page.locator("#second").hover()
        assert page.locator("#second").get_attribute("title").startswith("Entropy of the predicted probabilities")
        page.get_by_role("button", name="Play street").click()
        page.wait_for_function("steadyseg.counts.shown >= 3")
        assert page.evaluate("steadyseg.ages.length") <= page.evaluate("steadyseg.counts.shown") - 1, "one compiled"


def test_the_card_of_the_chosen_model_is_there(browser: Any, address: str) -> None:
    with visitor(browser, address) as page:
        page.get_by_role("tab", name="About").click()
        page.locator("#about").get_by_text("free to test").wait_for()
        page.locator("#model input").click()
        page.get_by_role("option", name="road-realtime").click()
        page.locator("#card button").first.click()
        page.locator("#about-all").get_by_text("in India, Europe and the USA").wait_for()
        assert page.locator(":is(#about, #about-all) :is(script, img)").count() == 0
        assert not page.locator("#about-all a:not([href^=http])").count()
