"""The tab "Live": the browser's camera beside what the network makes of it."""

from typing import Any

import numpy as np

from app.page_errors import input_errors_shown
from app.page_session import Sessions
from app.page_settings import Settings
from app.page_stream import RATE_HZ
from seg.options import ModeName

TIME_LIMIT_S = 600
"""Seconds of work after which a stream gives its place to whoever waits; one click starts it again."""
PLACES = 4
"""Streams at once; more of them wait in line."""
CAMERA = {"video": {"width": {"ideal": 640}, "height": {"ideal": 480}}}
"""The networks see less than that, and every frame travels to the server and back twice."""
VIEW = """<figure class="view"><figcaption>${label}</figcaption><div class="frame">
${value ? `<img src="${value}" alt="${label}">` : "press Record below the camera;<br>nothing is kept"}
</div></figure>"""


def add_live_tab(sessions: Sessions, controls: list[Any]) -> None:
    """Camera, segmentation and uncertainty side by side, and a line of figures."""
    import gradio as gr

    def look(request: gr.Request, image: np.ndarray | None, model: str, mode: ModeName, looks: int) -> Any:
        if image is None:
            return gr.skip()
        with input_errors_shown():
            pictures = sessions.get(str(request.session_hash)).live.step(image, Settings(model, mode, looks))
        return pictures.overlay, pictures.uncertainty, pictures.status

    with gr.Row():
        camera = gr.Image(
            label="Camera", sources="webcam", streaming=True, height=300, buttons=[], elem_id="camera",
            webcam_options=gr.WebcamOptions(mirror=False, constraints=CAMERA),
        )  # fmt: skip
        overlay = gr.HTML("", label="Segmentation", html_template=VIEW, js_on_load=None, elem_id="overlay")
        unsure = gr.HTML("", label="Uncertainty (entropy)", html_template=VIEW, js_on_load=None, elem_id="uncertainty")
    status = gr.HTML("", elem_id="status", elem_classes="status")
    camera.stream(
        look, [camera, *controls], [overlay, unsure, status], stream_every=1 / RATE_HZ, time_limit=TIME_LIMIT_S,
        concurrency_limit=PLACES, show_progress="hidden", api_visibility="private",
    )  # fmt: skip
