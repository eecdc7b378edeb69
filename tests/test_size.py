"""Ceilings of the code: a feature that raises one says in the same commit what goes.

Ceilings of commands, flags and settings: tests/app/test_settings.py.
"""

import sys
from itertools import islice
from pathlib import Path
from types import FrameType

import pytest
from made.video import grey_frames, write_video

from steadyseg.app.video.flags import VideoJob, VideoOptions
from steadyseg.app.video.job import open_for, open_recording

PROJECT = Path(__file__).parent.parent
CEILINGS = {
    "core": (7_570, 73),
    "street": (2_810, 21),
    "seg": (6_470, 58),
    "classification": (2_910, 24),
    "export": (2_210, 19),
    "runtime": (3_110, 25),
    "app": (11_380, 111),
    "studies": (10_600, 115),
    "tests": (30_420, 190),
}
"""Lines and files of Python by folder, 3 % above what was reached; lines are as ruff formats them."""

FRAME_FILES = 20
"""Files that one steady frame of a video enters."""


@pytest.mark.parametrize("folder", CEILINGS)
def test_a_folder_stays_within_its_ceilings(folder: str) -> None:
    files = [path for path in (PROJECT / folder).rglob("*.py") if "__pycache__" not in path.parts]
    lines = sum(len(path.read_text().splitlines()) for path in files)
    max_lines, max_files = CEILINGS[folder]
    assert lines <= max_lines and len(files) <= max_files, (lines, len(files))


@pytest.mark.slow
def test_a_steady_frame_of_a_video_enters_few_files(tmp_path: Path) -> None:
    """Files of the product that the thread of the frames enters, as a debugger's reader would."""
    entered = set[str]()

    def enter(frame: FrameType, event: str, _: object) -> None:
        entered.update([frame.f_code.co_filename] if event == "call" else [])

    job = VideoJob(str(write_video(tmp_path / "a.mp4", grey_frames(9))), options=VideoOptions(model="street-tiny"))
    with open_recording(job, open_for(job)) as recording:
        frames = islice(recording, 6, None)
        next(frames)
        sys.setprofile(enter)
        next(frames)
        sys.setprofile(None)
    paths = {path for name in entered if (path := Path(name).resolve()).is_relative_to(PROJECT)}
    rooms = CEILINGS.keys() - {"studies", "tests"}
    assert 0 < sum(path.relative_to(PROJECT).parts[0] in rooms for path in paths) <= FRAME_FILES
