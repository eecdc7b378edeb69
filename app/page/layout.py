"""The layout of the page: its tabs beside the controls, and the events of the controls."""

from typing import TYPE_CHECKING, Any

from steadyseg.app.page.about_tab import about, add_about_tab
from steadyseg.app.page.file.file_tab import add_file_tab
from steadyseg.app.page.flags import PageOptions
from steadyseg.app.page.live.live_tab import add_compare_tab, add_live_tab, legend
from steadyseg.app.page.live.live_worker import LiveWorkers
from steadyseg.app.page.live.source_feed import display_name
from steadyseg.app.page.parts.controls import (
    QUIET,
    SET_JS,
    Controls,
    add_controls,
    describe_controls,
    describe_threshold,
)
from steadyseg.app.page.parts.sessions import Sessions
from steadyseg.app.page.parts.settings import method_options, model_meta, notices

if TYPE_CHECKING:
    import gradio as gr

TITLE = "SteadySeg"
SENTENCE = "Real-time video segmentation with a measured confidence for every pixel"
LINK = "<a href='in-browser/' target='_blank'>run it in this browser instead</a>"
SWEEP_S, KEEP_S = 600, 3600
"""Every `SWEEP_S` seconds Gradio removes the uploads and results that are older than `KEEP_S`."""


def build_blocks(options: PageOptions, workers: LiveWorkers, sessions: Sessions) -> "gr.Blocks":
    """Builds the tabs and the controls, for the page's first model. Raises InputError if the checkpoint is missing."""
    import gradio as gr

    meta, playing = model_meta(options.model), display_name(options.source)
    blocks = gr.Blocks(title=TITLE, analytics_enabled=False, fill_width=True, delete_cache=(SWEEP_S, KEEP_S))
    with blocks:
        link = LINK if options.in_browser else ""
        gr.HTML(f"<h1>{TITLE}</h1><p>{SENTENCE}</p>{link}", js_on_load=None, elem_id="title")
        with gr.Row(elem_id="columns"):
            with gr.Column(scale=4, min_width=300), gr.Tabs():
                with gr.Tab("Live", render_children=True):
                    live_legend = add_live_tab(meta.classes, playing)
                with gr.Tab("Compare", render_children=True):
                    compare_legend, comparing = add_compare_tab(meta.classes, playing)
                with gr.Tab("File"):
                    file_tab = gr.Column()
                with gr.Tab("About this model"):
                    cards = add_about_tab(options.model)
            with gr.Column(scale=0, min_width=232, elem_id="controls"):
                controls = add_controls(options.model)
                noted = gr.HTML(notices(meta), js_on_load=None, elem_id="notices")
        with file_tab:
            add_file_tab(sessions, controls, options, workers.pool)
        connect(blocks, controls, comparing, [live_legend, compare_legend], noted, cards)

        def leave(request: gr.Request) -> None:
            sessions.end(str(request.session_hash))

        blocks.unload(leave)  # Gradio's script keeps a connection while the page is open
    return blocks


def connect(
    blocks: "gr.Blocks", controls: Controls, comparing: list[Any], legends: list[Any], noted: Any, cards: list[Any]
) -> None:
    """Connects the controls with the browser's script; a new model or method also changes the texts about it."""
    import gradio as gr

    values = [*controls.values, *comparing]
    gr.on([control.change for control in values], None, values, None, js=SET_JS, **QUIET)
    blocks.load(None, values, None, js=SET_JS, **QUIET)

    def describe(name: str) -> tuple[str, ...]:
        model = controls.offered[name]
        meta = model_meta(model)
        colors = legend(meta.classes)
        return notices(meta), *about(model), *[colors] * len(legends)

    controls.model.change(
        describe,
        controls.model,
        [noted, *cards, *legends],
        js="(model) => { steadyseg.modelChanged(); return [model]; }",
        **QUIET,
    )

    def describe_method(name: str, *values: Any) -> tuple[Any, ...]:
        return describe_controls(controls.offered[name], method_options(*values))

    def describe_remaining(name: str, *values: Any) -> Any:
        *method, level = values
        return gr.update(info=describe_threshold(controls.offered[name], method_options(*method), level))

    method = controls.method_values
    for inputs, answer, outputs in (
        (method, describe_method, [*method[1:], controls.second]),
        ([*method, controls.min_confidence], describe_remaining, [controls.min_confidence]),
    ):
        triggers = [control.change for control in inputs]
        gr.on(triggers, answer, inputs, outputs, trigger_mode="always_last", **QUIET)
