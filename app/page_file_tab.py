"""The tab "File": a video or image, or the built-in street; progress, the result to play, and its report."""

from collections.abc import Iterator
from typing import Any

from app.page_errors import input_errors_shown
from app.page_file import STREET, Progress, Result, segment_file
from app.page_report import report_html
from app.page_session import Sessions
from app.page_settings import Settings
from core.errors import InputError
from seg.options import ModeName


def add_file_tab(sessions: Sessions, controls: list[Any]) -> None:
    """What to segment on the left, the result on the right."""
    import gradio as gr

    with gr.Row():
        with gr.Column(scale=1, min_width=260):
            upload = gr.File(label="Video or image", file_types=["video", "image"], height=140, elem_id="upload")
            start = gr.Button("Segment the file", variant="primary", elem_id="start")
            street = gr.Button("Try the street", elem_id="street")
            stop = gr.Button("Stop", variant="stop", visible=False, elem_id="stop")
            progress = gr.HTML("", elem_id="progress", elem_classes="status")
        with gr.Column(scale=3):
            video = gr.Video(label="Segmentation and uncertainty", height=300, autoplay=True, elem_id="video")
            picture = gr.Image(label="Segmentation and uncertainty", visible=False, height=300, elem_id="picture")
            report = gr.HTML("", elem_id="report")
            with gr.Row():
                media = gr.DownloadButton("Download the result", visible=False, elem_id="download-result")
                figures = gr.DownloadButton("Download the report (JSON)", visible=False, elem_id="download-report")

    def shown(step: Progress | Result) -> dict[Any, Any]:
        """What one step of a job changes on the page."""
        if isinstance(step, Progress):
            first = {video: None, picture: None, report: "", media: gr.update(visible=False)} if not step.done else {}
            return {progress: step.html(), stop: gr.update(visible=True), **first}
        return {
            progress: "stopped: this is what was done until then" if step.stopped else "done",
            stop: gr.update(visible=False),
            video: gr.update(value=step.video, visible=step.video is not None),
            picture: gr.update(value=step.picture, visible=step.picture is not None),
            report: report_html(step.record),
            media: gr.update(value=step.video or step.picture, visible=True),
            figures: gr.update(value=step.report, visible=True),
        }

    def run(session_hash: str | None, spec: str | None, settings: Settings) -> Iterator[dict[Any, Any]]:
        session = sessions.get(str(session_hash))
        with input_errors_shown():
            if spec is None:
                raise InputError("no file is chosen; upload a video or an image, or try the street")
            with session.job() as folder:
                for step in segment_file(spec, settings, folder, lambda: session.stop_asked):
                    yield shown(step)

    def run_upload(
        request: gr.Request, spec: str | None, model: str, mode: ModeName, looks: int
    ) -> Iterator[dict[Any, Any]]:
        yield from run(request.session_hash, spec, Settings(model, mode, looks))

    def run_street(request: gr.Request, model: str, mode: ModeName, looks: int) -> Iterator[dict[Any, Any]]:
        yield from run(request.session_hash, STREET, Settings(model, mode, looks))

    def ask_to_stop(request: gr.Request) -> None:
        sessions.get(str(request.session_hash)).stop_asked = True

    outputs = [progress, stop, video, picture, report, media, figures]
    common: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    started = start.click(run_upload, [upload, *controls], outputs, concurrency_id="file", **common)
    toured = street.click(run_street, controls, outputs, concurrency_id="file", **common)
    for job in (started, toured):
        job.failure(lambda: (gr.update(visible=False), ""), None, [stop, progress], **common)
    stop.click(ask_to_stop, queue=False, **common)
