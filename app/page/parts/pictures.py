"""The page's pictures: the overlay with hidden classes and grey unsure pixels, and four pictures of uncertainty."""

import numpy as np

from steadyseg.app.opencv import opencv
from steadyseg.app.page.parts.settings import ViewSettings
from steadyseg.app.video.render import conformal_threshold, grey
from steadyseg.app.video.views import MapName, draw_map, draw_segmentation
from steadyseg.core.classes import ClassList
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.method import Method
from steadyseg.core.model.checkpoint import CheckpointMeta

JPEG_QUALITY = 85


def overlay_picture(
    frame: Frame, maps: Maps, classes: ClassList, view: ViewSettings, changed: np.ndarray | None = None
) -> np.ndarray:
    """(H, W, 3) uint8 RGB: class colours over the camera's picture.

    Hidden classes keep the camera's own colours; pixels below the confidence threshold are grey. `changed` (H, W) bool
    becomes white.
    """
    cv2 = opencv()
    image, label = frame.image, maps.label
    picture = draw_segmentation(image, maps, classes.palette(), view.opacity)
    if view.hidden:
        table = np.isin(np.arange(256), sorted(view.hidden)).astype(np.uint8)
        cv2.copyTo(image, cv2.LUT(label, table), picture)
    if view.min_confidence > 0:
        unsure = cv2.compare(maps.confidence, view.min_confidence * 255, cv2.CMP_LT)
        cv2.copyTo(grey(image), unsure, picture)
    if changed is not None:
        picture[changed] = 255
    return picture


def second_picture(maps: Maps, second: MapName, meta: CheckpointMeta, method: Method) -> np.ndarray:
    """(H, W, 3) uint8 RGB, black is sure. Raises InputError for a picture without its calibration."""
    threshold = conformal_threshold(meta.fit_in_use(method), method) if second == "set-size" else None
    return draw_map(maps, second, threshold)


def jpeg(image: np.ndarray) -> bytes:
    """An (H, W, 3) uint8 RGB picture as a JPEG; nothing is written to disk. 2 ms for 480x360."""
    cv2 = opencv()
    _, data = cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    return bytes(data)
