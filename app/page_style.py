"""How the page looks; fonts are those of the system, so that nothing is fetched from anywhere."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradio.themes import Base

CSS = """
.gradio-container, .gradio-container * { --font: system-ui, -apple-system, "Segoe UI", sans-serif; }
.gradio-container { font-family: var(--font) !important; }
.gradio-container main { max-width: 1240px; margin: 0 auto; padding: 10px 20px !important; }
.gradio-container main > div > .column { gap: 10px; }
#title { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 16px; }
#title h1 { margin: 0; font-size: 1.5rem; }
#title p { margin: 0; opacity: 0.75; }
.notice { display: inline-block; margin: 0 6px 0 0; padding: 2px 9px; border-radius: 9px; font-size: 0.82rem;
  background: #fdf3d6; color: #6b4e00 !important; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 14px; font-size: 0.85rem; align-items: center; }
.legend .entry { display: inline-flex; align-items: center; gap: 5px; white-space: nowrap; }
.legend i { display: inline-block; width: 14px; height: 14px; border-radius: 3px; }
.legend .scale { margin-left: auto; }
.legend .scale i { width: 130px; }
.view { margin: 0; }
.view figcaption { font-size: 0.85rem; padding-bottom: 4px; opacity: 0.75; }
.view .frame { aspect-ratio: 4 / 3; background: #101114; border-radius: 6px; display: flex; align-items: center;
  justify-content: center; overflow: hidden; color: #9a9da4; font-size: 0.9rem; text-align: center; padding: 0; }
.view img { width: 100%; height: 100%; object-fit: contain; }
.status { font-size: 0.92rem; font-variant-numeric: tabular-nums; min-height: 1.5em; }
.status progress { display: block; width: 100%; height: 10px; accent-color: #2563eb; margin-bottom: 6px; }
.report { display: flex; flex-wrap: wrap; gap: 6px 28px; font-size: 0.86rem; align-items: flex-start; }
.report table { border-collapse: collapse; width: auto; margin: 0; }
.report :is(table, tr, th, td) { border: 0 !important; background: none !important; }
.report th { text-align: left; font-weight: 400; padding: 1px 16px 1px 0; opacity: 0.75; }
.report td { text-align: right; font-variant-numeric: tabular-nums; padding: 1px 0; }
.report .notes { width: 100%; }
"""


def theme() -> "Base":
    """Plain system fonts: a font given as a string would be asked of the server, a Google font of Google."""
    import gradio as gr

    plain, mono = [gr.themes.Font("sans-serif")], [gr.themes.Font("monospace")]
    return gr.themes.Default(primary_hue="blue", font=plain, font_mono=mono)
