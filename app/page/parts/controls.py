"""The controls beside the tabs. The browser sends their values with every frame; nothing restarts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from steadyseg.app.page.parts.settings import (
    FIRST_MODE,
    MAX_SAMPLES,
    MAX_TAU,
    MIN_TAU,
    MODES,
    SAMPLES,
    TAU,
    Settings,
    ViewSettings,
    method_options,
    method_settings,
    model_meta,
    offered_models,
    read_graph,
)
from steadyseg.app.video.render import conformal_threshold
from steadyseg.app.video.verdict import percent
from steadyseg.app.video.views import SCALES, MapName
from steadyseg.core.errors import InputError
from steadyseg.core.method import MOTION_TAU, PUBLISHED_TAU, MethodOptions, is_temporal, method_of_fit, settings
from steadyseg.core.model.thresholds import remaining
from steadyseg.runtime.open_model import is_graph

QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
"""Options of every event: no progress over the components, and no entry in Gradio's API."""
SET_JS = "(...values) => { window.steadyseg?.set(...values); return []; }"
"""Runs in the browser alone: the next frame carries the new values."""


@dataclass(frozen=True)
class Controls:
    """Gradio components; their order in `values` is the order of the arguments of `set` in app/page/web/live.js."""

    offered: Mapping[str, str]
    """Model name or file for each choice of `model`."""
    model: Any
    mode: Any
    samples: Any
    tau: Any
    motion: Any
    calibrated: Any
    second: Any
    opacity: Any
    min_confidence: Any

    @property
    def method_values(self) -> list[Any]:
        """The model's control, then a control for each argument of `method_options`."""
        return [self.model, self.mode, self.samples, self.tau, self.motion, self.calibrated]

    @property
    def values(self) -> list[Any]:
        return [*self.method_values, self.second, self.opacity, self.min_confidence]

    def settings(self, values: Sequence[Any]) -> Settings:
        """The settings of a job of the File tab, from the values of the controls in the order of `values`."""
        model, *method, second, opacity, min_confidence = values
        view = ViewSettings(second, opacity / 100, min_confidence / 100)
        return Settings(method_settings(self.offered[model], *method), view)


def add_controls(model: str) -> Controls:
    """Adds the controls of network, method and view; rarely changed controls are in a closed accordion."""
    import gradio as gr

    offered = offered_models(model)
    models = gr.Dropdown(list(offered), value=Path(model).name, label="Model", elem_id="model")
    first = read_graph(model).method.mode if is_graph(model) else FIRST_MODE
    mode = gr.Radio(list(MODES), value=first, label="Method", info="Smoothed: mean over recent frames.", elem_id="mode")
    samples = _slider(
        "samples",
        "Samples per frame",
        "Forward passes with dropout that are averaged.",
        (1, MAX_SAMPLES, SAMPLES),
        1,
        visible=False,
    )
    choices = second_choices(model, method_options())
    second = gr.Dropdown(choices, value="uncertainty", label="Second picture", elem_id="second")
    opacity = _slider("opacity", "Overlay opacity %", "Strength of the class colours.", (0, 100, 50), 5)
    info = describe_threshold(model, method_options(), 0)
    min_confidence = _slider("min-confidence", "Confidence threshold %", info, (0, 95, 0), 5)
    with gr.Accordion("More settings", open=False, elem_id="more"):
        tau = _slider(
            "tau",
            "Decay time tau",
            f"Frames that the mean remembers; {TAU:g}: the network's own.",
            (MIN_TAU, MAX_TAU, TAU),
            0.25,
        )
        motion = gr.Checkbox(
            True, label="Motion compensation", info="The mean follows the optical flow.", elem_id="motion"
        )
        info = describe_temperature(model, method_options())
        calibrated = gr.Checkbox(True, label="Calibrated temperature", info=info, elem_id="calibrated")
    for control in (mode, samples, tau, motion, calibrated):
        control.interactive = not is_graph(model)
    mode.change(
        lambda mode: (gr.update(visible=mode == "bnn"), *[gr.update(visible=is_temporal(mode))] * 2),
        mode,
        [samples, tau, motion],
        **QUIET,
    )
    # This runs in the browser: the server's answer could arrive after the visitor has set tau by hand.
    default = f"(mode, motion) => motion && mode === 'vq-bnn' ? {MOTION_TAU} : {PUBLISHED_TAU}"
    for control in (mode, motion):
        control.input(None, [mode, motion], tau, js=default)
    return Controls(offered, models, mode, samples, tau, motion, calibrated, second, opacity, min_confidence)


def _slider(
    name: str, label: str, info: str, values: tuple[float, float, float], step: float, visible: bool = True
) -> Any:
    """A slider; `values`: lowest, highest and first value."""
    import gradio as gr

    return gr.Slider(*values, step=step, label=label, info=info, visible=visible, elem_id=name)


def second_choices(model: str, options: MethodOptions) -> list[tuple[str, MapName]]:
    """Choices of the second picture; "set-size" is marked if the model lacks the necessary calibration."""
    meta, missing = model_meta(model), ""
    try:
        method = read_graph(model).method if is_graph(model) else options.resolve(meta)
        conformal_threshold(meta.fit_in_use(method), method)
    except InputError:
        missing = " (needs calibration)"
    return [(scale.title + (missing if name == "set-size" else ""), name) for name, scale in SCALES.items()]


def describe_temperature(model: str, options: MethodOptions) -> str:
    """Explanation of the calibration switch for this model and method."""
    if is_graph(model):
        held = read_graph(model).method
        return f"The file computes {held}, with logits divided by {held.temperature:.2f}."
    method = replace(options, calibrated=None).resolve(model_meta(model))
    if not method.calibrated:
        return f"No temperature was fitted for {method}: see steadyseg calibrate."
    words = f"Logits are divided by {method.temperature:.2f}, fitted for this method"
    return f"{words}."


def describe_threshold(model: str, options: MethodOptions, level: float) -> str:
    """Explanation of the confidence threshold, with the share of pixels above it if the network's record has it."""
    words, meta = "Pixels below are grey.", model_meta(model)
    if not meta.thresholds:
        return words
    method = read_graph(model).method if is_graph(model) else options.resolve(meta)
    measured = method_of_fit(meta.thresholds)
    if not method.calibrated or settings(method) != settings(measured):
        return f"{words} What remains was measured for {measured} at its fitted temperature alone."
    (name, kept, right), *others = remaining(meta.thresholds, level / 100)
    parts = [f"on {name} {percent(kept)} of the pixels remain, and {percent(right)} of them are right"]
    parts += [f"on {name} {percent(kept)} and {percent(right)}" for name, kept, right in others]
    return f"{words} At {level:.0f} %: {'; '.join(parts)}.".replace(" %", "\N{NO-BREAK SPACE}%")


def describe_controls(model: str, options: MethodOptions) -> tuple[Any, ...]:
    """Updates of `mode`, `samples`, `tau`, `motion`, `calibrated` and `second` for another model or method."""
    import gradio as gr

    free = not is_graph(model)
    mode = gr.update(interactive=True) if free else gr.update(interactive=False, value=read_graph(model).method.mode)
    calibrated = gr.update(info=describe_temperature(model, options), interactive=free)
    return (
        mode,
        *[gr.update(interactive=free)] * 3,
        calibrated,
        gr.update(choices=second_choices(model, options)),
    )
