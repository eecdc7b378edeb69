"""`steadyseg analyze robustness`: runs the studies and writes the report, its JSON and its plots into a folder."""

from typing import Any

from steadyseg.app.console import track
from steadyseg.core.system.files import write_atomic
from steadyseg.studies.harness.report_folder import (
    CORRUPTIONS,
    choose_folder,
    command_line,
    print_report,
    require_checkpoints,
    require_extra,
    write_plots,
    write_report_json,
)
from steadyseg.studies.robustness.flags import RobustnessJob


def run_robustness(job: RobustnessJob) -> int:
    """Runs the studies, writes the report, and prints the summary and the report's place."""
    require_checkpoints(
        job.models, "a pretrained name or a .safetensors file", "attacks and dropout need the network itself"
    )
    from steadyseg.studies.robustness.plots import draw_plots
    from steadyseg.studies.robustness.report import markdown, summary
    from steadyseg.studies.robustness.studies import robustness  # after what can be refused without torch

    require_extra(CORRUPTIONS, "analyze robustness")
    out = choose_folder("robustness", job.models, job)
    command = command_line("robustness", job.models, job)

    def write_report(record: dict[str, Any]) -> None:
        if not job.plots:
            record = record | {"notes": [*record["notes"], "no plots: plots=false"]}
        write_report_json(record, out, command)
        plots = write_plots(draw_plots(record), out) if job.plots else []
        write_atomic(out / "report.md", markdown(record, command, plots).encode())

    record = robustness(job, track, write_report)
    print_report([summary(record)], record["notes"], out)
    return 0
