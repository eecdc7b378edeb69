"""The street's depth against rays computed by hand, and against the labels of the same frames."""

import numpy as np
import pytest

from steadyseg.seg.street.drive import Street
from steadyseg.seg.street.paint.camera import Road, StreetCamera, camera_at
from steadyseg.seg.street.paint.canvas import BUILDING, OVERSAMPLING, PAVEMENT, ROAD, SKY
from steadyseg.seg.street.paint.depth import DepthCanvas
from steadyseg.seg.street.paint.light import light_of

STRAIGHT = Road((0.0, 0.0), (1.0, 1.0), (0.0, 0.0))


def test_a_wall_along_the_street_has_the_depth_of_each_ray() -> None:
    """On the plane 4 m to the right, the ray through column u meets depth f * 4 / (u - centre)."""
    camera = StreetCamera(STRAIGHT, 100.0, 0.0, 1.4, 400.0, 320.0, 240.0, 640, 480)
    canvas = DepthCanvas(camera, light_of(0))
    wall = np.array([(4.0, 0.0, 106.0), (4.0, 0.0, 140.0), (4.0, 5.0, 140.0), (4.0, 5.0, 106.0)])
    canvas.polygon(wall, (9, 9, 9), BUILDING)
    rows, columns = np.nonzero(canvas.pixels[..., 3] == BUILDING)
    assert len(rows) > 10_000
    expected = 400.0 * 4.0 / (columns - 320.0)
    np.testing.assert_allclose(canvas.metres[rows, columns], np.clip(expected, 6.0, 40.0), rtol=1e-4)


@pytest.mark.parametrize("index", [0, 400])
def test_the_depth_belongs_to_the_label_of_each_pixel(index: int) -> None:
    street = Street(seed=3, height=120, width=160)
    label, depth = street.frame(index).label, street.depth(index)
    assert label is not None and depth.shape == label.shape and depth.dtype == np.float32
    camera = camera_at(street.seed, index / street.fps, OVERSAMPLING * street.width, OVERSAMPLING * street.height)
    first, metres = camera.ground_depths()
    ground = np.full(camera.rows, np.inf)
    ground[first:] = metres
    ground = np.repeat(ground[::OVERSAMPLING, None], street.width, axis=1)
    assert np.isinf(depth[label == SKY]).all()
    road = label == ROAD
    assert road.sum() > 2000
    apart = np.abs(depth[road] / ground[road] - 1)  # the rows at the ends of a stripe are half outside of it
    assert (apart < 1e-3).mean() > 0.99 and (apart < 0.05).mean() > 0.998
    below = np.isfinite(ground)
    behind = depth[below] / ground[below] - 1  # what stands on the ground hides the ground behind it
    assert (behind > 0.05).mean() < 0.002 and behind.max() < 0.15  # feet and wheels reach nearer than their owner
    standing = ~np.isin(label, (SKY, ROAD, PAVEMENT)) & below
    assert (depth[standing] < 0.9 * ground[standing]).mean() > 0.3 and depth.min() >= 1.0
