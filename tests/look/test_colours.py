"""Colours: told apart by lightness alone, by all eyes, with words that can be read on them."""

import numpy as np
import pytest

from regard.look.colours import (
    DARK,
    DARK_AGAINST,
    DARK_PAPER,
    LEVELS,
    LIGHT,
    LIGHT_AGAINST,
    LIGHT_PAPER,
    Paper,
    colour,
    ink,
    level,
    luminance,
    shades,
)

# What eyes that lack one kind of cone see, in linear sRGB (Machado, Oliveira and Fernandes 2009, severity 1).
EYES = {
    "all cones": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
    "none": [[0.2126, 0.7152, 0.0722]] * 3,
}
SHADES = [number / LEVELS for number in range(LEVELS + 1)]


def linear(shade: str) -> np.ndarray:
    values = np.array([int(shade[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lightness(rgb: np.ndarray) -> float:
    """L* of CIELAB, from 0 to 100."""
    light = float(np.clip(rgb, 0, 1) @ [0.2126, 0.7152, 0.0722])
    return 116 * light ** (1 / 3) - 16 if light > (6 / 29) ** 3 else light * (29 / 3) ** 3


def contrast(first: str, second: str) -> float:
    dark, light = sorted(float(linear(shade) @ [0.2126, 0.7152, 0.0722]) for shade in (first, second))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("dark", [False, True])
def test_more_weight_is_darker_on_light_paper_and_lighter_on_dark(eyes: str, dark: bool) -> None:
    seen = np.array([lightness(np.array(EYES[eyes]) @ linear(colour(weight, dark))) for weight in SHADES])
    steps = np.diff(seen) if dark else -np.diff(seen)
    assert (steps > 0.3).all()
    assert steps.sum() > 70
    assert steps.max() < 3 * steps.mean()  # no jump that would look like an edge


@pytest.mark.parametrize("dark", [False, True])
def test_words_on_every_shade_can_be_read(dark: bool) -> None:
    assert all(contrast(colour(weight, dark), ink(colour(weight, dark))) >= 4.5 for weight in SHADES)


def test_ink_on_anything() -> None:
    greys = [f"#{value:02x}{value:02x}{value:02x}" for value in range(256)]
    assert all(contrast(grey, ink(grey)) >= 4.5 for grey in greys)
    assert (ink("#ffffff"), ink("#000000")) == ("#000000", "#ffffff")


@pytest.mark.parametrize(("paper", "dark"), [(LIGHT_PAPER, False), (DARK_PAPER, True)])
def test_paper(paper: Paper, dark: bool) -> None:
    assert min(contrast(paper.ground, paper.text), contrast(paper.ground, paper.faint)) >= 4.5
    assert contrast(paper.ground, paper.link) >= 3
    assert contrast(paper.ground, colour(0, dark)) < 1.2 < contrast(paper.ground, colour(0.2, dark))


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize(("weights", "against"), [(LIGHT, LIGHT_AGAINST), (DARK, DARK_AGAINST)])
def test_what_speaks_against_is_another_run_from_the_same_nothing(
    eyes: str, weights: tuple[str, ...], against: tuple[str, ...]
) -> None:
    seen = np.array([lightness(np.array(EYES[eyes]) @ linear(shade)) for shade in shades(against)])
    assert (np.diff(seen) * (seen[-1] - seen[0]) > 0).all() and abs(seen[-1] - seen[0]) > 60
    assert shades(against)[0] == shades(weights)[0] and not set(shades(against)[1:]) & set(shades(weights))
    if eyes != "none":  # who sees any hue at all tells the two apart, but for the weakest and the darkest
        middle = np.array([[linear(shade) for shade in shades(stops)[24:48]] for stops in (weights, against)])
        one, other = middle @ np.array(EYES[eyes]).T
        hues = [each / each.sum(1, keepdims=True) for each in (one, other)]
        assert np.abs(hues[0] - hues[1]).sum(1).min() > 0.3


def test_every_weight_has_a_colour() -> None:
    assert [level(weight) for weight in (-1, 0, 0.5, 1, 7)] == [0, 0, LEVELS // 2, LEVELS, LEVELS]
    assert colour(-0.5) == colour(0) != colour(1) == colour(2)
    assert len({colour(weight, dark) for weight in SHADES for dark in (False, True)}) == 2 * len(SHADES)


def test_luminance() -> None:
    assert luminance("#000000") == 0 and luminance("#ffffff") == pytest.approx(1)
    assert luminance("#3c8fb0") == pytest.approx(float(linear("#3c8fb0") @ [0.2126, 0.7152, 0.0722]))
