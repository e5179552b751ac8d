"""Placeholders are written at most as often as the source has them."""

import torch

from regard.search.beam import beam
from regard.search.copying import CopyingModel, PlaceholderFreeModel
from regard.search.hypothesis import LengthLimit
from regard.search.stepwise import greedy
from tests.search.small import sources, translator

PLACEHOLDERS = torch.tensor([5, 6, 7])
LIMIT = LengthLimit(0.0, 12.0, shortest=8)


def test_no_placeholder_is_written_more_often_than_it_is_read() -> None:
    source, lengths = sources(7, 4, 6, 3)
    read = torch.stack([(source == token).sum(1) for token in PLACEHOLDERS.tolist()], 1)
    unlimited = 0
    for seed in range(6):
        model = translator(9, seed, sharp=2.0)
        copying = CopyingModel(model, PLACEHOLDERS, PLACEHOLDERS)
        for results in (
            [[each] for each in greedy(copying, source, lengths, LIMIT)],
            beam(copying, source, lengths, LIMIT, width=3, best=3),
        ):
            for row, hypotheses in enumerate(results):
                for each in hypotheses:
                    counts = [each.tokens.count(token) for token in PLACEHOLDERS.tolist()]
                    assert all(count <= limit for count, limit in zip(counts, read[row].tolist(), strict=True))
        plain = [each.tokens for each in greedy(model, source, lengths, LIMIT)]
        unlimited += sum(tokens.count(5) > int(read[row, 0]) for row, tokens in enumerate(plain))
    assert unlimited, "the model itself writes more"


def test_other_tokens_are_as_probable_as_before_and_a_margin_makes_placeholders_rarer() -> None:
    source, lengths = sources(6, 6)
    source[:, 1] = 5
    model = translator(9)
    plain, _, _ = model.step(model.start(source, lengths), torch.ones(2, 1, dtype=torch.int64))
    for margin in (0.0, 3.0):
        copying = CopyingModel(model, PLACEHOLDERS, PLACEHOLDERS, margin)
        logits, _, _ = copying.step(copying.start(source, lengths), torch.ones(2, 1, dtype=torch.int64))
        others = [token for token in range(9) if token not in PLACEHOLDERS.tolist()]
        assert torch.equal(logits[..., others], plain[..., others])
        torch.testing.assert_close(logits[..., 5], plain[..., 5] - margin)


def test_without_placeholders_none_is_written_and_other_tokens_keep_their_order() -> None:
    source, lengths = sources(7, 4, 6, 3)
    model = translator(9, 1, sharp=2.0)
    free = PlaceholderFreeModel(model, PLACEHOLDERS)
    written = {token for each in greedy(model, source, lengths, LIMIT) for token in each.tokens}
    assert written & set(PLACEHOLDERS.tolist()), "the model itself writes some"
    results = [greedy(free, source, lengths, LIMIT), *beam(free, source, lengths, LIMIT, width=3, best=3)]
    assert not any(token in PLACEHOLDERS for ranked in results for each in ranked for token in each.tokens)
    first = torch.ones(4, 1, dtype=torch.int64)
    with torch.no_grad():
        plain, _, _ = model.step(model.start(source, lengths), first)
        logits, _, _ = free.step(free.start(source, lengths), first)
    others = torch.tensor([token for token in range(plain.shape[-1]) if token not in PLACEHOLDERS])
    assert torch.equal(logits[..., others], plain[..., others])
    assert bool(logits[..., PLACEHOLDERS].eq(-torch.inf).all())
