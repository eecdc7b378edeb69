"""The tabs Live and Compare, as a visitor's browser sees them."""

import json
import math
import re
from typing import Any

import pytest
from made.page_visit import (
    GRADIO,
    PATIENCE_MS,
    choose,
    differ,
    fact,
    free_port,
    open_more,
    page_at,
    picture,
    set_number,
    settled,
    start_camera,
    stripes,
    visitor,
    wait_for_shown,
)
from made.waiting import wait_for
from PIL import Image

from steadyseg.app.page.server import Page
from steadyseg.core.model.checkpoint import read_meta
from steadyseg.seg.pretrained import find_checkpoint

pytestmark = [pytest.mark.slow, *GRADIO]
PICTURES = 6
MARK = "one => getComputedStyle(one, '::after').content"
"""What the style sheet adds to a figure that nothing verifies."""
REMEMBER_WHAT_IS_SENT = """() => {
  const fetched = window.fetch;
  window.fetch = (address, options) => {
    if (String(address).includes("/live/")) options.body.slice(0, 2000).text().then((text) => (window.lastSent = text));
    return fetched(address, options);
  };
}"""


def test_a_live_stream_shows_figures_that_move_and_leaves_nothing_on_the_disk(browser, address, cache):
    before = {path for path in cache.rglob("*") if path.is_file()}
    seen: dict[str, set[str]] = {"left": set(), "right": set()}
    with visitor(browser, address) as page:
        start_camera(page)
        for _ in range(PICTURES):
            wait_for_shown(page, 3)
            for side, pictures in seen.items():
                pictures.add(picture(page, side))
        page.wait_for_timeout(500)  # longer than the metrics stay as they are
        wait_for(lambda: float(fact(page, "fps")) > 0)
        rate, age = float(fact(page, "fps")), float(fact(page, "age").removesuffix(" ms"))
        dropped, of = (int(number) for number in fact(page, "dropped").split(" of "))
        words = page.locator(".stage .verdict").first.inner_text()
        assert words.startswith("few labels can be trusted here: this does not look like "), "as all is to this model"
        assert page.locator(".tile:has([data-fact=unsure]) span").first.evaluate(MARK) == '", doubtful"'
        timeline = page.locator(".timeline polyline.confidence").first
        wait_for(lambda: len((timeline.get_attribute("points") or "").split()) > 3)
        shares = page.locator("#legend .share").all_inner_texts()
        assert 0 < float(fact(page, "confidence")) < 1 and fact(page, "unsure").endswith(" %")
    assert all(len(pictures) > 3 for pictures in seen.values())
    assert rate > 0 and 0 < age < PATIENCE_MS and 0 <= dropped < of
    assert 90 < sum(int(share.removesuffix(" %")) for share in shares) < 110
    assert {path for path in cache.rglob("*") if path.is_file()} == before


def test_the_page_plays_when_it_opens_and_stops_when_asked(browser: Any, address: str) -> None:
    with visitor(browser, address, plays=True) as page:
        wait_for_shown(page, 3)
        assert page.locator(".stage [data-do=camera]").first.is_visible()
        assert page.get_by_role("tab", name="File").is_visible()
        page.locator(".stage [data-do=stop]").first.click()
        set_number(page, "opacity", 70)
        shown = page.evaluate("steadyseg.counts.shown")
        page.wait_for_timeout(500)
        assert page.evaluate("steadyseg.counts.shown") == shown, "a changed setting starts nothing again"


def test_every_control_acts_on_the_next_frames(still_browser: Any, address: str) -> None:
    with visitor(still_browser, address) as page:
        page.locator("#mode").get_by_text("single frame").click()
        open_more(page)
        start_camera(page)
        before = settled(page)

        def change(what: Any) -> tuple[bool, bool]:
            """Whether the left and the right picture are other ones now."""
            nonlocal before
            what()
            wait_for_shown(page, 2)
            now = settled(page)
            changed = (differ(now[0], before[0]), differ(now[1], before[1]))
            before = now
            return changed

        assert change(lambda: None) == (False, False)
        assert change(lambda: choose(page, "second", "1 - confidence")) == (False, True)
        assert page.locator(".scale").first.inner_text().split() == ["0", "1"]
        assert change(lambda: set_number(page, "opacity", 90)) == (True, False)
        assert change(lambda: set_number(page, "min-confidence", 95)) == (True, False)
        set_number(page, "min-confidence", 0)
        wait_for_shown(page, 2)
        before = settled(page)
        assert change(lambda: [one.click() for one in page.locator("#legend input").all()]) == (True, False)
        assert change(lambda: page.locator("#mode").get_by_text("smoothed (vq-dnn)").click())[1], "another temperature"
        assert change(page.locator("#calibrated input").click)[1]
        assert change(page.locator("#calibrated input").click)[1]
        assert change(lambda: choose(page, "second", "classes in the prediction set"))[1]
        page.locator("#mode").get_by_text("single frame").click()
        settled(page)
        before = settled(page)
        assert change(lambda: choose(page, "model", "street-tiny")) == (True, True)
        assert page.locator("#legend input:not(:checked)").count() == 0, "another model begins with all classes"
        wait_for(lambda: "`steadyseg calibrate` fits one" in page.locator(".stage .message").first.inner_text())
        wait_for_shown(page, 2)
        page.locator("#second input").click()
        page.get_by_role("option", name="needs calibration").wait_for()


def test_what_remains_above_a_threshold_is_that_of_the_networks_own_record(browser: Any, address: str) -> None:
    with visitor(browser, address) as page:
        words = page.locator("#min-confidence")

        def wait_for_words(told: str, absent: str = "?") -> None:
            shown = words.inner_text
            wait_for(lambda: told in shown().replace("\N{NO-BREAK SPACE}", " ") and absent not in shown())

        assert "remain" not in words.inner_text(), "nobody measured the network that the page starts with"
        choose(page, "model", "camvid-unet-s")
        sets = read_meta(find_checkpoint("camvid-unet-s")).thresholds["sets"].values()
        set_number(page, "min-confidence", 70)
        val, others = ([f"{100 * row[key][70 // 5]:.0f} %" for key in ("kept", "right")] for row in sets)
        told = f"At 70 %: on CamVid val {val[0]} of the pixels remain, and {val[1]} of them are right"
        wait_for_words(f"{told}; on other drives {others[0]} and {others[1]}.")
        page.locator("#mode").get_by_text("single frame").click()
        wait_for_words("was measured for vq-dnn, tau 8, motion", absent="At ")
        choose(page, "model", "street-tiny")
        wait_for_words("Pixels below are grey.", absent="measured")


def test_what_is_set_travels_with_each_frame(still_browser: Any, address: str) -> None:
    with visitor(still_browser, address) as page:
        open_more(page)
        assert "divided by 3.00, fitted for this method" in page.locator("#more").inner_text()
        start_camera(page)
        page.locator("#mode").get_by_text("MC dropout (bnn)", exact=True).click()
        page.locator("#samples").wait_for(state="visible")
        assert not page.locator("#tau").is_visible()
        set_number(page, "samples", 3)
        page.locator("#mode").get_by_text("smoothed (vq-dnn)").click()
        page.locator("#tau").wait_for(state="visible")
        page.locator("#motion input").click()
        page.wait_for_function("document.querySelector('#tau input[type=number]').value === '1.25'")
        set_number(page, "tau", 5)
        page.wait_for_function("steadyseg.settings.tau === 5")
        page.evaluate(REMEMBER_WHAT_IS_SENT)
        page.wait_for_function("window.lastSent")
        sent = json.loads(re.search(r"{[^}]*}", page.evaluate("lastSent"))[0])
    expected = {"mode": "vq-dnn", "samples": 3, "tau": 5, "motion": False, "calibrated": True, "against": None}
    assert {key: sent[key] for key in expected} == expected


def test_a_click_tells_all_classes_of_a_place_and_the_keyboard_does_too(browser: Any, address: str) -> None:
    with visitor(browser, address) as page:
        page.locator("#mode").get_by_text("MC dropout (bnn)").click()
        start_camera(page)
        page.locator("canvas[data-picture=left]").first.click(position={"x": 60, "y": 60})
        chart = page.locator(".inspect .chart").first
        chart.locator("svg.history polygon").first.wait_for(state="attached")
        shares = [
            int(text.removesuffix(" %")) for text in chart.locator("text").all_text_contents() if text.endswith(" %")
        ]
        assert len(shares) == 11 and 93 <= sum(shares) <= 107
        assert "Bicyclist" in "".join(chart.locator("text").all_text_contents())
        frame = page.locator(".stage .frame").first
        before = page.evaluate("steadyseg.watch")
        frame.focus()
        frame.press("ArrowRight")
        assert page.evaluate("steadyseg.watch") == pytest.approx([before[0] + 0.02, before[1]])
        frame.press("Escape")
        assert page.evaluate("steadyseg.watch") is None and not chart.is_visible()


def test_two_methods_are_compared_on_the_same_frames(browser: Any, address: str) -> None:
    with visitor(browser, address) as page:
        start_camera(page)
        choose(page, "model", "street-tiny")  # the untrained model labels all pixels alike
        page.get_by_role("tab", name="Compare").click()
        wait_for(lambda: "-" not in (fact(page, "flicker-left"), fact(page, "flicker-right")))
        assert (fact(page, "title-left"), fact(page, "title-right")) == ("single frame (dnn)", "smoothed (vq-dnn)")
        wait_for(lambda: 0 <= flicker(page, "right") < flicker(page, "left") <= 100)
        wait_for(lambda: "fewer" in fact(page, "fewer"))
        # Not at once: both methods give one picture of the first frame of a stream.
        wait_for(lambda: picture(page, "left", "compare") != picture(page, "right", "compare"))
        wait_for(lambda: white(page) < 0.02)
        page.locator("#mark-changes input").click()
        wait_for(lambda: white(page) > 0.02)


def flicker(page: Any, side: str) -> float:
    """The percentage that the page gives."""
    text = fact(page, f"flicker-{side}").removesuffix(" %")
    return math.nan if text == "-" else float(text)  # after a pause there is none for a moment


def white(page: Any) -> float:
    """The share of the left picture that is white."""
    count = """canvas => { const d = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
      let n = 0; for (let i = 0; i < d.length; i += 4) n += Math.min(d[i], d[i + 1], d[i + 2]) > 240;
      return 4 * n / d.length }"""
    return float(page.locator("[data-stage=compare] canvas[data-picture=left]").evaluate(count))


@pytest.mark.long
def test_two_visitors_share_nothing(still_browser: Any, served: tuple[Page, str]) -> None:
    page_served, address = served
    wait_for(lambda: len(page_served.workers) == 0)
    with visitor(still_browser, address) as first:
        start_camera(first)
        alone = settled(first)
        with visitor(still_browser, address) as second:
            start_camera(second)
            set_number(second, "opacity", 100)
            wait_for_shown(second, 2)
            assert differ(settled(second)[0], alone[0])
            assert not any(map(differ, settled(first), alone))
            assert len(page_served.workers) == 2
        wait_for(lambda: len(page_served.workers) == 1)
        wait_for_shown(first, 3)
        assert not any(map(differ, settled(first), alone))
        first.locator("[data-do=stop]").first.click()
        wait_for(lambda: len(page_served.workers) == 0)
        first.locator(".stopped .message", has_text="stopped: the last picture stays").first.wait_for()


@pytest.mark.parametrize(("width", "scheme"), [pytest.param(1280, "light", marks=pytest.mark.long), (390, "dark")])
def test_nothing_sticks_out_and_nothing_jumps(still_browser: Any, address: str, width: int, scheme: str) -> None:
    with visitor(still_browser, address, width, plays=True, color_scheme=scheme) as page:
        wait_for_shown(page, 1)
        wanted = "e => { const box = e.getBoundingClientRect(); return [box.left, box.top + scrollY, box.width]; }"
        strip = page.locator(".strip").first
        place = strip.evaluate(wanted)
        start_camera(page, shown=3)
        assert strip.evaluate(wanted) == place
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        frame = page.locator(".stage .frame").first.evaluate("e => e.getBoundingClientRect().width")
        assert frame > (450 if width > 1000 else 300), "the panel of controls leaves the window to the pictures"
        tiles = page.locator("[data-stage=live] .tile b")
        assert all(tiles.nth(index).evaluate("e => e.getBoundingClientRect().right") <= width for index in range(5))
        assert page.evaluate("document.body.classList.contains('dark')") is (scheme == "dark")
        open_more(page)
        assert page.locator("#more").evaluate("e => e.getBoundingClientRect().right") <= width


@pytest.mark.long
def test_a_server_that_stops_is_said_and_its_return_goes_on(still_browser: Any, model: str) -> None:
    port = free_port()
    with page_at(model, port=port) as (first, address), visitor(still_browser, address) as page:
        start_camera(page, shown=2)
        first.close()
        page.locator(".stage .message").get_by_text("does not answer").first.wait_for()
        with page_at(model, port=port):
            wait_for_shown(page, 2)
            page.wait_for_function("!document.querySelector('.stage .message').textContent.includes('does not answer')")
            page.goto("about:blank")


@pytest.mark.long
def test_why_the_servers_video_does_not_play_is_said_until_it_does(still_browser, model, tmp_path):
    photograph = tmp_path / "photo.png"
    with page_at(model, source=str(photograph)) as (_, address), visitor(still_browser, address) as page:
        page.locator(".stage [data-do=server]").first.click()
        page.get_by_text("no such file or folder: 'photo.png'").first.wait_for()
        Image.fromarray(stripes(1)[0]).save(photograph)
        wait_for_shown(page, 3)
        wait_for(lambda: page.locator(".stage .message").first.inner_text() == "")


@pytest.mark.long
def test_who_comes_when_all_places_are_taken_is_told_and_let_in_later(still_browser: Any, model: str) -> None:
    with (
        page_at(model, max_sessions=1, source="street:3:20") as (_, address),
        visitor(still_browser, address) as second,
    ):
        with visitor(still_browser, address) as first:
            start_camera(first)
            second.locator(".stage [data-do=server]").first.click()
            second.get_by_text("all 1 places are taken").first.wait_for()
        wait_for_shown(second, 3)
        wait_for(lambda: fact(second, "age").endswith(" ms"))  # not of the picture that waited for its network
        assert float(fact(second, "age").removesuffix(" ms")) > 0
        wait_for(lambda: second.locator(".stage .message").first.inner_text() == "")
