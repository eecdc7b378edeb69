"""The baseline of a batch: one process on one core that segments clip after clip like `steadyseg video`, with one
network.

    python -m steadyseg.studies.scale.loop CORE CLIPS_LIST OUT_FOLDER MODEL

Prints the seconds of each clip as JSON; reports are written, nothing is flushed to disk, nothing is restarted.
"""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

from steadyseg.app.scale.engines.machine import pin_cores


def main(core: str, clips: str, out: str, model: str) -> None:
    import os

    os.sched_setaffinity(0, {int(core)})
    pin_cores(1)
    from steadyseg.app.report_file import write_json
    from steadyseg.app.scale.engines.machine import limit_threads
    from steadyseg.app.video.flags import VideoJob, VideoOptions
    from steadyseg.app.video.job import open_for, segment_to_files

    limit_threads(1)
    job = VideoJob("", options=VideoOptions(model=model))
    segmenter = open_for(job)
    seconds = []
    for source in Path(clips).read_text().splitlines():
        began_s = time.perf_counter()
        segmenter.reset()
        outcome = segment_to_files(
            replace(job, source=source), segmenter, follow=lambda frames, _: any(False for _ in frames)
        )
        write_json(Path(out) / f"{Path(source).stem}.json", outcome.record)
        seconds.append(time.perf_counter() - began_s)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
