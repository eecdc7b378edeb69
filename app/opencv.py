"""Imports OpenCV where it is first needed; if system libraries are missing, one line says how to install them."""

from types import ModuleType

from steadyseg.core.errors import InputError

MISSING_LIBRARIES = "OpenCV needs the system's libGL and glib ({reason}); apt-get install -y libgl1 libglib2.0-0"


def opencv() -> ModuleType:
    """The `cv2` module. Raises InputError if its shared libraries are not installed."""
    try:
        import cv2
    except ImportError as error:
        raise InputError(MISSING_LIBRARIES.format(reason=error)) from error
    return cv2
