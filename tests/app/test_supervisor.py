"""The supervisor of cameras with real workers that die. Each imports this file, so nothing heavy is imported here."""

import os
import signal
import time
from contextlib import closing
from pathlib import Path

import pytest

from steadyseg.app.scale.cameras.camera_file import Camera
from steadyseg.app.scale.cameras.state import CameraState
from steadyseg.app.scale.cameras.supervisor import Supervisor
from steadyseg.app.scale.engines.local_engine import LocalEngine
from steadyseg.core.errors import CheckFailed


class Worker:
    """A worker in a process of its own. Given the camera "poison", it dies as soon as the file exists that is its
    source."""

    def watch(self, cameras: tuple[Camera, ...]) -> None:
        if cameras[0].name == "poison":
            while not Path(cameras[0].source).exists():
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        self._names = [camera.name for camera in cameras]

    def states(self) -> list[CameraState]:
        return [CameraState(name, frames=1) for name in self._names]


@pytest.mark.slow
def test_a_worker_that_dies_again_and_again_does_not_end_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    poison_now = tmp_path / "now"
    monkeypatch.setattr("steadyseg.app.scale.cameras.supervisor.DEATHS_IN_A_ROW", 2)
    with closing(LocalEngine(Worker)) as engine:
        supervisor = Supervisor(engine, [(Camera("poison", str(poison_now)),), (Camera("whole", "1"),)])
        for _ in supervisor.rounds():
            whole, poison = sorted(supervisor.figures(), key=lambda one: one.state.frames, reverse=True)
            if whole.state.frames:
                poison_now.touch()  # the other worker is ready, however busy the machine is
            if poison.restarts > 2:
                break
        assert whole.state.frames == 1 and not whole.restarts and "ended by SIGKILL" in poison.state.trouble
        assert not supervisor.trouble()
    with closing(LocalEngine(Worker)) as engine, pytest.raises(CheckFailed, match="no other is: ended by SIGKILL"):
        list(Supervisor(engine, [(Camera("poison", str(poison_now)),)]).rounds())
