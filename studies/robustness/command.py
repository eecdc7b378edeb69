"""`steadyseg analyze robustness`: runs the studies and writes the report, its JSON and its plots into a folder."""

from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from steadyseg.app.console import track
from steadyseg.app.open_model import is_graph
from steadyseg.app.report_file import write_json
from steadyseg.core.errors import InputError
from steadyseg.core.system.files import write_atomic
from steadyseg.studies.harness.command_line import command_line
from steadyseg.studies.harness.requirements import CORRUPTIONS, PLOTS, check_folder, require_extra
from steadyseg.studies.robustness.flags import RobustnessJob

T = TypeVar("T")
DEFAULT_PLACE = Path("runs/robustness")


def run_robustness(job: RobustnessJob) -> int:
    """Runs the studies, writes the report, and prints the summary and the report's place."""
    if not job.models:
        raise InputError("say which network: a pretrained name or a .safetensors file, or several to compare")
    for model in job.models:
        if is_graph(model):
            raise InputError(
                f"{model}: attacks and dropout need the network itself; give the checkpoint it was exported from"
            )
    from steadyseg.studies.harness.target import short_names
    from steadyseg.studies.robustness.report import summary
    from steadyseg.studies.robustness.studies import robustness  # after what can be refused without torch

    require_extra(CORRUPTIONS, "analyze robustness")
    if job.plots:
        require_extra(PLOTS, "plots")
    out = job.output or DEFAULT_PLACE / "+".join(Path(name).stem for name in short_names(job.models))
    check_folder(out, overwrite=job.overwrite)
    record = robustness(
        job.models,
        job.data,
        split=job.split,
        studies=job.only,
        options=job.options,
        device=job.device,
        watch=track,
        keep=lambda so_far: write_report(so_far, out, command_line("robustness", job.models, job), job.plots),
    )
    Console().print(summary(record))
    for note in record["notes"]:
        Console(stderr=True).print(f"note: {note}", soft_wrap=True, highlight=False)
    print(out / "report.md")
    return 0


def write_report(record: dict[str, Any], out: Path, command: str, plots: bool) -> None:
    """report.json, the plots and report.md, in a folder that is made where there is none."""
    from steadyseg.studies.robustness.plots import write_plots
    from steadyseg.studies.robustness.report import markdown

    if not plots:
        record = record | {"notes": [*record["notes"], "no plots: plots=false"]}
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "report.json", {"command": command, **record})
    names = write_plots(record, out) if plots else []
    write_atomic(out / "report.md", markdown(record, command, names).encode())
