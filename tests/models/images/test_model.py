"""Pictures as patches: against torch's convolution, what a patch knows of its place, and who sees whom."""

import pytest
import torch

from regard.models.images.model import ImageEncoder, ImageModel, ImageOptions, Patches
from regard.models.transformer.layers import AttentionOptions


def small(**changes: object) -> ImageOptions:
    given = {
        "image_height": 8,
        "image_width": 12,
        "channels": 3,
        "patch": 4,
        "width": 16,
        "heads": 2,
        "feedforward": 32,
    }
    return ImageOptions(**(given | changes))  # type: ignore[arg-type]


def test_patches_are_a_convolution_that_does_not_overlap() -> None:
    torch.manual_seed(0)
    patches = Patches(small()).eval()
    convolution = torch.nn.Conv2d(3, 16, 4, stride=4)
    convolution.weight.data = patches.project.weight.data.view(16, 3, 4, 4)
    convolution.bias.data = patches.project.bias.data
    pictures = torch.randn(5, 3, 8, 12)
    expected = convolution(pictures).flatten(2).mT + patches.position_vectors()
    torch.testing.assert_close(patches(pictures), expected)


def test_places_are_rows_and_columns() -> None:
    learned = Patches(small())
    places = learned.position_vectors().view(2, 3, 16)
    torch.testing.assert_close(places[1, 2], learned.row_table[1] + learned.column_table[2])
    waves = Patches(small(positions="sinusoidal")).position_vectors().view(2, 3, 16)
    assert (waves[:, :1, :8] == waves[:, :, :8]).all() and (waves[:1, :, 8:] == waves[:, :, 8:]).all()
    assert len({tuple(place) for place in waves.flatten(0, 1).tolist()}) == 6


@pytest.mark.parametrize(("pattern", "seeing"), [("grid(2, 3).row", [3, 4, 5]), ("grid(2, 3).column", [1, 4])])
def test_a_patch_is_seen_where_the_pattern_allows(pattern: str, seeing: list[int]) -> None:
    encoder = ImageEncoder(small(layers=1, attention=AttentionOptions(pattern=pattern))).eval()
    pictures = torch.randn(1, 3, 8, 12)
    changed = pictures.clone()
    changed[0, :, 5, 6] += 3  # in patch 4: row 1, column 1
    differs = (encoder(pictures) - encoder(changed)).abs().sum(-1)[0] > 1e-6
    assert differs.nonzero()[:, 0].tolist() == seeing


def test_a_stem_of_convolutions_sees_beyond_its_patch() -> None:
    patches = Patches(small(stem="conv")).eval()
    pictures = torch.randn(1, 3, 8, 12)
    changed = pictures.clone()
    changed[0, :, 0, 4] += 3  # the corner of patch 1, beside patch 0
    differs = (patches(pictures) - patches(changed)).abs().sum(-1)[0] > 1e-6
    assert differs.nonzero()[:, 0].tolist() == [0, 1]


def test_classifier_and_what_it_looked_at() -> None:
    model = ImageModel(small(), 7).eval()
    pictures = torch.randn(4, 3, 8, 12)
    seen = model(pictures, weights=True)
    assert seen.logits.shape == (4, 7) and seen.weights.shape == (4, 6)
    torch.testing.assert_close(seen.weights.sum(-1), torch.ones(4))
    assert torch.equal(seen.logits, model(pictures).logits) and model(pictures).weights is None
    attentions = model.attentions(pictures)
    assert attentions["encoder"].shape == (4, 2, 2, 6, 6)
    torch.testing.assert_close(attentions["pool"][:, 0, 0, 0], seen.weights)


def test_what_decided_decides() -> None:
    """The class hangs on one patch; the learned query comes to look there."""
    torch.manual_seed(1)
    options = small(layers=0, dropout=0.0)
    model = ImageModel(options, 2)
    pictures, classes = 0.1 * torch.randn(64, 3, 8, 12), torch.arange(64) % 2
    pictures[:, :, 4:, 8:] += torch.where(classes == 1, 1.0, -1.0)[:, None, None, None]  # patch 5
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(pictures).logits, classes).backward()
        optimizer.step()
    seen = model.eval()(pictures, weights=True)
    assert (seen.logits.argmax(-1) == classes).all()
    assert seen.weights.mean(0).argmax() == 5 and seen.weights.mean(0)[5] > 0.4


def test_says_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="patch: expected a divisor of image_height = 8, got 3"):
        ImageModel(small(patch=3), 2)
    with pytest.raises(ValueError, match="stem: expected 'linear' or 'conv', got 'deep'"):
        small(stem="deep")
    with pytest.raises(ValueError, match=r"pictures: expected \[B, 3, 8, 12\], got \[2, 3, 8, 8\]"):
        ImageEncoder(small())(torch.zeros(2, 3, 8, 8))
    with pytest.raises(ValueError, match="classes: expected a whole number"):
        ImageModel(small(), 0)
