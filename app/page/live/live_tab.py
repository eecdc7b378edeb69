"""Markup of the Live and Compare tabs; app/page/web/live.js fills in the pictures, instruments.js the numbers."""

import json
from html import escape
from typing import Any

import numpy as np

from steadyseg.app.page.parts.settings import MODES
from steadyseg.app.video.render import draw_uncertainty
from steadyseg.app.video.views import SCALES
from steadyseg.core.classes import ClassList

TILES = (
    ("fps", "frames/s", "frames shown per second, over the last two seconds"),
    ("age", "latency", "time from the camera to this screen, measured in this browser; median of two seconds"),
    (
        "dropped",
        "dropped frames",
        "frames that were skipped for a newer one, of all since the start",
    ),
    ("confidence", "mean confidence", "mean probability of the most likely class over the picture"),
    ("unsure", "uncertain pixels", "share of pixels with confidence below 0.5"),
)
"""The tiles of the strip: key, label, explanation."""
PANELS = {
    "live": (("right", "inspected pixel"),),
    "compare": (("left", "inspected pixel, left"), ("right", "inspected pixel, right")),
}
VERDICT_MEANS = (
    "An estimate of the accuracy from confidence, familiarity and the layout of the classes, fitted on other pictures. "
    "Below 50 % few labels can be trusted: look yourself, or train on such pictures."
)


def stage(name: str, source: str) -> str:
    """HTML of one tab, `live` or `compare`: buttons, two pictures and a row of numbers. `source`: the name of the
    server's own video."""
    tiles = "".join(
        f"<div class='tile' title='{escape(meaning)}'><b data-fact='{key}'>-</b><span>{name}</span></div>"
        for key, name, meaning in TILES
    )
    headline = (
        "<p class='headline'>labels that change from frame to frame: <b data-fact='flicker-left'>-</b> left, "
        "<b data-fact='flicker-right'>-</b> right<span data-fact='fewer'></span></p>"
    )
    return (
        f"<div class='stage' data-stage='{name}'><div class='bar'>"
        f"<button data-do='camera' class='primary'>Camera</button>"
        f"<button data-do='server'>Play {escape(source)}</button><button data-do='stop' disabled>Stop</button>"
        "<a href='#controls'>Settings</a><span class='message' role='status' aria-live='polite'></span></div>"
        f"{headline if name == 'compare' else ''}"
        f"<div class='verdict' role='status' title='{VERDICT_MEANS}'></div>"
        f"<div class='pictures'>{_picture('left', name)}{_picture('right', name)}</div>"
        f"<div class='strip'>{tiles}</div></div>"
    )


def _picture(side: str, name: str) -> str:
    if name == "compare":
        foot = f"<div class='foot'><span class='track'><i data-bar='flicker-{side}'></i></span></div>"
        modes = escape(json.dumps({mode: name for name, mode in MODES}))
        caption = f"<span data-fact='title-{side}' data-modes='{modes}'></span>"
    elif side == "left":
        caption = "<span>segmentation</span>"
        foot = "<div class='foot'>click a pixel to inspect it</div>"
    else:
        caption = "<span data-fact='second'>uncertainty (entropy)</span>"
        foot = f"<div class='foot'>{scale()}</div>"
    hint = "Start your camera, or play the video of this page. No picture is stored." if side == "left" else ""
    return (
        f"<figure class='view'><figcaption>{caption}</figcaption><div class='frame' tabindex='0' role='img' "
        f"aria-label='picture {side}; Enter inspects its middle, arrows move'><canvas data-picture='{side}'></canvas>"
        f"<span class='mark'></span><p class='hint'>{hint}</p></div>{foot}</figure>"
    )


def scale() -> str:
    """The colour scale of the second picture; `data-scales` holds the words beside it for each kind."""
    scales = {name: scale[:3] for name, scale in SCALES.items()}
    _, low, high, _ = SCALES["uncertainty"]
    shades = draw_uncertainty(np.linspace(0, 255, 9).astype(np.uint8)[None])[0]  # (9, 3), from sure to unsure
    stops = ", ".join(f"rgb({red}, {green}, {blue})" for red, green, blue in shades)
    return (
        f"<span class='scale' data-scales='{escape(json.dumps(scales))}'><span data-fact='low'>{low}</span>"
        f"<i style='background:linear-gradient(to right, {stops})'></i>"
        f"<span data-fact='high'>{high}</span></span>"
    )


def legend(classes: ClassList) -> str:
    """A switch for each class, with its colour, name and share; web/instruments.js fills in the share."""
    entries = "".join(
        f"<label class='entry' data-class='{index}' data-name='{escape(name)}' data-color='rgb{color}'>"
        f"<input type='checkbox' value='{index}' checked><i style='background:rgb{color}'></i>{escape(name)}"
        "<span class='share'></span></label>"
        for index, (name, color) in enumerate(zip(classes.names, classes.colors, strict=True))
    )
    return f"<div class='legend' role='group' aria-label='Classes that are coloured'>{entries}</div>"


def details(name: str) -> str:
    """Timeline and inspected pixel."""
    panels = "".join(
        f"<div class='inspect' data-side='{side}'><div class='key'><span>{title}</span><span class='span'>last 8 s"
        "</span><button data-do-not-watch aria-label='close'>×</button></div><div class='chart'></div>"
        "<p class='hint'>Click a pixel in a picture to see the probabilities of all classes there, now and over time."
        "</p></div>"
        for side, title in PANELS[name]
    )
    return (
        "<div class='details'><div class='timeline'><div class='key'><span><i class='confidence'></i>confidence</span>"
        "<span><i class='unsure'></i>uncertain pixels</span><span class='span'>last 20 s</span></div>"
        "<svg viewBox='0 0 600 60' preserveAspectRatio='none' role='img' "
        "aria-label='Confidence and uncertain pixels over time'>"
        "<path d='M0 2H600M0 30H600M0 58H600'/><polyline class='confidence'/><polyline class='unsure'/></svg>"
        f"<div class='runs' data-fact='backend'></div></div>{panels}</div>"
    )


def add_live_tab(classes: ClassList, source: str) -> Any:
    """Adds the tab and returns its legend, which changes with the model."""
    import gradio as gr

    gr.HTML(stage("live", source), js_on_load=None)
    colors = gr.HTML(legend(classes), js_on_load=None, elem_id="legend")
    gr.HTML(details("live"), js_on_load=None)
    return colors


def add_compare_tab(classes: ClassList, source: str) -> tuple[Any, list[Any]]:
    """Adds the tab and returns (legend, the two controls of this tab)."""
    import gradio as gr

    with gr.Row(elem_id="compare"):
        against = gr.Radio(list(MODES), value="dnn", label="Left picture", elem_id="against")
        mark = gr.Checkbox(False, label="Changed labels in white", elem_id="mark-changes")
    gr.HTML(stage("compare", source), js_on_load=None)
    colors = gr.HTML(legend(classes), js_on_load=None, elem_id="legend-compare")
    gr.HTML(details("compare"), js_on_load=None)
    return colors, [against, mark]
