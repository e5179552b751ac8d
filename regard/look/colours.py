"""Sequential colour maps for weights, from near the background to the strongest colour, for light and dark themes.

On a light background more weight is darker, on a dark one lighter. Lightness alone distinguishes the weights, so that
the colours can be read with colour blindness and in greyscale print.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LEVELS = 64  # shades above the one for a weight of 0
LIGHT = ("#f4f4ec", "#b8dccb", "#70b7b7", "#398bae", "#285a9a", "#221f5c")
DARK = ("#1f252e", "#254a78", "#2273a3", "#37a0ad", "#86ceb4", "#f1f6cf")
LIGHT_AGAINST = (LIGHT[0], "#f6dfc6", "#efbd8a", "#df9150", "#bf6420", "#8d420d", "#552503")
"""for values below 0: evidence against a weight"""
DARK_AGAINST = (DARK[0], "#4d3019", "#7d4718", "#b1631d", "#d98a45", "#f0b886", "#ffe6cf")


class Paper(NamedTuple):
    """The colours of a picture except for those of its weights."""

    ground: str
    text: str
    faint: str  # text that matters less than the words
    link: str


LIGHT_PAPER = Paper("#ffffff", "#1b1f27", "#5d6571", "#2a6094")
DARK_PAPER = Paper("#13171d", "#e9ecef", "#9aa4b1", "#74c2b6")


def level(weight: float) -> int:
    """Return the shade of a weight, 0 to LEVELS; weights are clamped to 0 and 1."""
    return round(max(0.0, min(1.0, weight)) * LEVELS)


def colour(weight: float, dark: bool = False) -> str:
    """Return the colour of a weight from 0 to 1, as #rrggbb."""
    return (DARK_SHADES if dark else LIGHT_SHADES)[level(weight)]


def ink(background: str) -> str:
    """Return black or white, whichever has more contrast; on the worst background the contrast is still 4.58."""
    light = luminance(background)
    return "#000000" if (light + 0.05) / 0.05 >= 1.05 / (light + 0.05) else "#ffffff"


def luminance(colour: str) -> float:
    """Return the relative luminance as WCAG defines it, from 0 for black to 1 for white."""
    red, green, blue = _linear_rgb(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


# Oklab (Björn Ottosson, 2020): linear sRGB → cone responses → their cube roots → lightness and two hues.

TO_CONES = np.array(
    [
        (0.4122214708, 0.5363325363, 0.0514459929),
        (0.2119034982, 0.6806995451, 0.1073969566),
        (0.0883024619, 0.2817188376, 0.6299787005),
    ]
)
TO_LAB = np.array(
    [
        (0.2104542553, 0.7936177850, -0.0040720468),
        (1.9779984951, -2.4285922050, 0.4505937099),
        (0.0259040371, 0.7827717662, -0.8086757660),
    ]
)


def shades(stops: tuple[str, ...]) -> tuple[str, ...]:
    """Return LEVELS + 1 colours, interpolated linearly between the stops in Oklab, where equal steps look equal."""
    labs = np.cbrt(np.array([_linear_rgb(stop) for stop in stops]) @ TO_CONES.T) @ TO_LAB.T
    places = np.linspace(0, len(stops) - 1, LEVELS + 1)
    mixed = np.stack([np.interp(places, np.arange(len(stops)), channel) for channel in labs.T], 1)
    linear = np.clip((mixed @ np.linalg.inv(TO_LAB).T) ** 3 @ np.linalg.inv(TO_CONES).T, 0, 1)
    gamma = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return tuple("#" + "".join(f"{value:02x}" for value in row) for row in np.round(255 * gamma).astype(int).tolist())


def _linear_rgb(colour: str) -> list[float]:
    """Return red, green and blue of #rrggbb in linear light, from 0 to 1."""
    values = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    return [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values]


LIGHT_SHADES, DARK_SHADES = shades(LIGHT), shades(DARK)
