"""Which worker watches which camera: the busiest first, each to the worker that has least to do."""

from collections.abc import Sequence

from app.scale.cameras.camera_file import Camera


def place(cameras: Sequence[Camera], workers: int) -> list[tuple[Camera, ...]]:
    """By frames a second (`Camera.load`), as all run one network; no worker is left without a camera.

    The longest-processing-time rule: at worst 4/3 of the best division (Graham 1969).
    """
    placed: list[list[Camera]] = [[] for _ in range(min(workers, len(cameras)))]
    loads = [0.0] * len(placed)
    for camera in sorted(cameras, key=lambda one: -one.load):
        worker = loads.index(min(loads))
        placed[worker].append(camera)
        loads[worker] += camera.load
    return [tuple(one) for one in placed]
