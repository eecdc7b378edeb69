"""Painting of a building's wall: bricks, windows, doors and bands, placed in metres."""

import cv2
import numpy as np

from steadyseg.street.paint.canvas import BUILDING
from steadyseg.street.paint.light import Color
from steadyseg.street.paint.texture import fractal_noise, labelled

TEXELS_PER_METRE = 36


class Wall:
    """A wall that is being painted; coordinates are metres from the bottom left."""

    def __init__(self, width: float, height: float, random: np.random.Generator) -> None:
        self.width, self.height, self.random = width, height, random
        self.image = np.zeros((round(height * TEXELS_PER_METRE), round(width * TEXELS_PER_METRE), 3), np.float32)

    def rows(self, low: float, high: float) -> slice:
        total = len(self.image)
        return slice(max(total - round(high * TEXELS_PER_METRE), 0), max(total - round(low * TEXELS_PER_METRE), 0))

    def columns(self, left: float, right: float) -> slice:
        return slice(max(round(left * TEXELS_PER_METRE), 0), max(round(right * TEXELS_PER_METRE), 0))

    def rect(self, left: float, low: float, right: float, high: float, color: Color | np.ndarray) -> None:
        self.image[self.rows(low, high), self.columns(left, right)] = color

    def scale(self, left: float, low: float, right: float, high: float, gain: float) -> None:
        self.image[self.rows(low, high), self.columns(left, right)] *= gain

    def bricks(self, low: float, high: float, color: Color) -> None:
        """Paints courses of 0.083 m with staggered joints."""
        area = self.image[self.rows(low, high)]
        rows, columns = area.shape[:2]
        courses, bricks = rows // 3 + 1, columns // 8 + 2
        tones = self.random.normal(1.0, 0.075, (courses, bricks)) + 0.03 * self.random.standard_normal((courses, 1))
        tones = np.repeat(np.repeat(tones, 3, 0), 8, 1)
        tones[4::6] = np.roll(tones[4::6], 4, 1)
        area[:] = np.array(color) * tones[:rows, :columns, None]
        area[2::3] *= 1.1
        area[2::3] += 6

    def render(self, low: float, high: float, color: Color) -> None:
        self.image[self.rows(low, high)] = color

    def window(
        self, left: float, low: float, width: float, height: float, frame: Color, panes: tuple[int, int]
    ) -> None:
        """Paints a window: reveal, frame, glass that mirrors the sky, glazing bars and a sill."""
        right, high, random = left + width, low + height, self.random
        self.rect(left - 0.05, low - 0.02, right + 0.05, high + 0.05, (70, 66, 62))
        self.rect(left, low, right, high, frame)
        self.glass(left + 0.07, low + 0.07, right - 0.07, high - 0.07)
        if random.random() < 0.45:  # curtains or a blind
            cloth = np.array((214, 206, 190)) * random.uniform(0.6, 1.0)
            if random.random() < 0.5:
                drop = height * random.uniform(0.15, 0.5)
                self.rect(left + 0.07, high - 0.07 - drop, right - 0.07, high - 0.07, cloth)
            else:
                self.rect(left + 0.07, low + 0.07, left + 0.07 + 0.2 * width, high - 0.07, cloth)
                self.rect(right - 0.07 - 0.2 * width, low + 0.07, right - 0.07, high - 0.07, 0.92 * cloth)
        for index in range(1, panes[0]):
            across = left + width * index / panes[0]
            self.rect(across - 0.03, low, across + 0.03, high, frame)
        for index in range(1, panes[1]):
            up = low + height * index / panes[1]
            self.rect(left, up - 0.03, right, up + 0.04, frame)
        self.scale(left, high - 0.16, right, high, 0.6)
        self.rect(left - 0.1, low - 0.12, right + 0.1, low, (206, 200, 190))
        self.scale(left - 0.1, low - 0.24, right + 0.1, low - 0.12, 0.72)

    def glass(self, left: float, low: float, right: float, high: float) -> None:
        area = self.image[self.rows(low, high), self.columns(left, right)]
        rows, columns = area.shape[:2]
        if not rows or not columns:
            return
        bright = self.random.uniform(0.6, 1.05)
        top, bottom = np.array((120, 142, 160)) * bright, np.array((46, 54, 62)) * bright
        ramp = np.linspace(0, 1, rows)[:, None, None] ** 0.8
        area[:] = top * (1 - ramp) + bottom * ramp
        slant = (np.arange(columns)[None] + 0.7 * np.arange(rows)[:, None]) % (1.7 * columns + 1) < 0.45 * columns
        area[slant] = area[slant] * 1.12 + 5

    def lintel(self, left: float, low: float, width: float, color: Color) -> None:
        self.rect(left - 0.12, low, left + width + 0.12, low + 0.24, color)
        self.scale(left - 0.12, low, left + width + 0.12, low + 0.05, 0.8)

    def door(self, left: float, width: float, color: Color, height: float = 2.3) -> None:
        right = left + width
        self.rect(left - 0.14, 0.0, right + 0.14, height + 0.55, (222, 216, 204))
        self.rect(left, 0.18, right, height + 0.42, (52, 50, 48))
        self.glass(left + 0.05, height + 0.06, right - 0.05, height + 0.38)
        self.rect(left, 0.18, right, height, color)
        for low, high in ((0.35, 1.0), (1.15, height - 0.15)):
            for start in (0.1, 0.55):
                self.rect(left + start * width, low, left + (start + 0.35) * width, high, 0.8 * np.array(color))
        self.rect(left - 0.2, 0.0, right + 0.2, 0.18, (168, 164, 158))

    def band(self, low: float, high: float, color: Color) -> None:
        """Paints a cornice with its shadow."""
        self.rect(0.0, low, self.width, high, color)
        self.scale(0.0, low, self.width, low + 0.3 * (high - low), 0.84)
        self.scale(0.0, low - 0.22, self.width, low, 0.7)

    def words(self, text: str, left: float, low: float, right: float, high: float, color: Color) -> None:
        """Paints letters that fill a fascia."""
        (w, h), _ = cv2.getTextSize(text, cv2.FONT_HERSHEY_DUPLEX, 1.0, 2)
        room = (right - left) * TEXELS_PER_METRE, (high - low) * TEXELS_PER_METRE
        size = min(room[0] / max(w, 1), room[1] / max(h, 1))
        x = left * TEXELS_PER_METRE + (room[0] - w * size) / 2
        y = len(self.image) - low * TEXELS_PER_METRE - (room[1] - h * size) / 2
        ink = np.zeros(self.image.shape[:2], np.uint8)  # text is drawn on bytes only
        cv2.putText(ink, text, (int(x), int(y)), cv2.FONT_HERSHEY_DUPLEX, size, 255, max(int(2 * size), 1), cv2.LINE_AA)
        cover = ink[..., None] / np.float32(255)
        self.image += (np.array(color, np.float32) - self.image) * cover

    def weathered(self) -> np.ndarray:
        """The finished wall (H, W, 4), with stains, soot towards the ground and a shaded top."""
        rows, columns = self.image.shape[:2]
        stains = 1 + 0.035 * fractal_noise(self.random, rows, columns, 6)
        rain = fractal_noise(self.random, rows, columns, 60, 2).mean(0, keepdims=True)
        streaks = 1 + 0.02 * rain * np.linspace(1, 2, rows)[:, None]
        height = np.linspace(self.height, 0, rows)[:, None]
        soot = 0.84 + 0.16 * np.minimum(height / 1.6, 1.0)
        return labelled(self.image * (stains * streaks * soot)[..., None], BUILDING)
