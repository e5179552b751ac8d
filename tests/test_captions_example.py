"""examples/captions.py: what is drawn is what is said, and what is kept for dev is never met in training."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[1] / "examples" / "captions.py"


@pytest.fixture(scope="module")
def captions() -> ModuleType:
    spec = importlib.util.spec_from_file_location("captions", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_unseen_captions_are_unseen_and_all_words_are_met(captions: ModuleType) -> None:
    train, dev = captions.make(1500, 1, False), captions.make(200, 2, True)
    assert not {*train.captions} & {*dev.captions}
    assert {word for text in dev.captions for word in text.split()} <= {
        w for text in train.captions for w in text.split()
    }
    assert train.pixels.shape == (1500, 3, 32, 32) and train.pixels.min() >= 0 and train.pixels.max() <= 1


def test_pictures_show_what_captions_say(captions: ModuleType) -> None:
    """Each colour has its middle where the caption has it."""
    made = captions.make(300, 3, False)
    checked = 0
    for pixels, text in zip(made.pixels.numpy(), made.captions, strict=True):
        first, relation, second = text.partition(" above " if "above" in text else " left of ")
        colours = [part.split()[1] for part in (first, second)]
        if colours[0] == colours[1]:
            continue
        middles = []
        for colour in colours:
            wanted = np.array(captions.COLOURS[colour], np.float32)[:, None, None] / 255
            rows, columns = np.nonzero(abs(pixels - wanted).max(0) < 0.02)
            middles.append((rows.mean(), columns.mean()))
        axis = 0 if relation == " above " else 1
        assert middles[0][axis] + 5 < middles[1][axis], text
        checked += 1
    assert checked > 200


def test_shapes_differ(captions: ModuleType) -> None:
    drawn = [captions.draw([(("red", shape), (16.0, 16.0), 6.0)]) for shape in captions.SHAPES]
    covered = [(picture < 0.9).any(-1).sum() for picture in drawn]
    assert np.pi * 36 * 0.85 < covered[0] < np.pi * 36 * 1.25  # a disc
    assert all(abs(a - b).max() > 0.3 for a in drawn for b in drawn if a is not b)
    rows = (drawn[2] < 0.9).any(-1).sum(1)
    assert rows[11] < rows[16] < rows[20]  # a triangle widens downwards
