"""Minimum-Bayes-risk decoding against sacrebleu, pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sacrebleu.metrics.chrf import CHRF

from regard.metrics.pairwise_chrf import pairwise_chrf
from regard.search.beam import beam
from regard.search.distinct import Wording
from regard.search.hypothesis import Hypothesis, LengthLimit
from regard.search.minimum_risk import RiskOptions, minimum_risk, ranked_by_utility
from regard.search.stepwise import inverse_cdf, sample
from tests.search.small import check_against_forward, sources, translator

NAMES = ["", "", "", "ab", "abc ", "मु", " d", "e, ", "abd", "f", " a", "."]
WORDING = Wording(lambda tokens: "".join(NAMES[token] for token in tokens).strip(), tuple)
LIMIT = LengthLimit(1.5, 3, shortest=1)


def hypothesis(tokens: list[int], log_probability: float) -> Hypothesis:
    return Hypothesis(tokens, log_probability, 0.0, True, np.zeros((1, 1, len(tokens) + 1, 1), np.float32))


def expected_utility(text: str, drawn: list[str]) -> float:
    metric = CHRF(word_order=2)
    return sum(metric.sentence_score(text, [other]).score for other in drawn) / len(drawn)


def test_ranked_as_sacrebleu_ranks_all_pairs() -> None:
    draw = np.random.default_rng(0)
    for _ in range(20):
        drawn = [
            hypothesis(draw.integers(3, 12, draw.integers(1, 5)).tolist(), float(-draw.random())) for _ in range(9)
        ]
        drawn += drawn[:3]
        others = [hypothesis(draw.integers(3, 12, 3).tolist(), -0.5) for _ in range(3)]
        texts = [WORDING.text(each.tokens) for each in drawn]
        ranked = ranked_by_utility(drawn, others, WORDING, pairwise_chrf)
        every = {WORDING.text(each.tokens) for each in (*drawn, *others)}
        assert {WORDING.text(each.tokens) for each in ranked} == every and len(ranked) == len(every)
        for each in ranked:
            assert each.score == pytest.approx(expected_utility(WORDING.text(each.tokens), texts), abs=1e-9)
        assert [each.score for each in ranked] == sorted((each.score for each in ranked), reverse=True)


def test_of_one_text_the_most_probable_segmentation_is_the_candidate() -> None:
    drawn = [hypothesis([3, 4], -3.0), hypothesis([3, 4, 9], -1.0), hypothesis([4], -2.0), hypothesis([8, 11], -0.1)]
    twice = Wording(lambda tokens: "same" if 3 in tokens else WORDING.text(tokens), tuple)
    ranked = ranked_by_utility(drawn, [], twice, pairwise_chrf)
    assert [each.log_probability for each in ranked if 3 in each.tokens] == [-1.0] and len(ranked) == 3


def options(**changed: int) -> RiskOptions:
    given: dict[str, int] = {"samples": 6, "seed": 1, "width": 3} | changed
    return RiskOptions(given["samples"], pairwise_chrf, given["seed"], given["width"])


def test_a_sentence_does_not_depend_on_its_batch() -> None:
    model = translator(12, 1, sharp=0.5)
    source, lengths = sources(4, 2, 6, 3)
    together = minimum_risk(model, source, lengths, LIMIT, WORDING, options(), 4)
    again = minimum_risk(model, source, lengths, LIMIT, WORDING, options(), 4)
    other_seed = minimum_risk(model, source, lengths, LIMIT, WORDING, options(seed=2), 4)
    texts = [[each.tokens for each in ranked] for ranked in together]
    assert texts == [[each.tokens for each in ranked] for ranked in again]
    assert texts != [[each.tokens for each in ranked] for ranked in other_seed]
    for row, length in enumerate(lengths.tolist()):
        alone = minimum_risk(
            model, source[row : row + 1, :length], lengths[row : row + 1], LIMIT, WORDING, options(), 4
        )
        assert [each.tokens for each in alone[0]] == texts[row]


def test_candidates_have_the_log_probabilities_and_weights_of_the_model() -> None:
    model = translator(12, 1, sharp=0.5)
    source, lengths = sources(4, 2, 6)
    for row, ranked in enumerate(minimum_risk(model, source, lengths, LIMIT, WORDING, options(), 3)):
        for each in ranked:
            check_against_forward(model, source[row, : lengths[row]], each, penalty=None)
        (ended,) = beam(model, source[row : row + 1, : lengths[row]], lengths[row : row + 1], LIMIT, width=3, best=6)
        all_ranked = minimum_risk(
            model, source[row : row + 1, : lengths[row]], lengths[row : row + 1], LIMIT, WORDING, options(), 20
        )[0]
        assert {WORDING.text(x.tokens) for x in ended} <= {WORDING.text(x.tokens) for x in all_ranked}


def test_prefixes() -> None:
    model = translator(12, 1, sharp=0.5)
    source, lengths = sources(4, 2)
    for ranked, prefix in zip(
        minimum_risk(model, source, lengths, LIMIT, WORDING, options(), 9, [[5, 6], []]), ([5, 6], []), strict=True
    ):
        assert all(each.tokens[: len(prefix)] == prefix for each in ranked)


def test_uniform_numbers_draw_from_the_distribution() -> None:
    torch.manual_seed(0)
    probabilities = torch.softmax(torch.randn(7), -1).double()
    uniforms = (torch.arange(100_000) + 0.5) / 100_000
    drawn = inverse_cdf(probabilities.expand(100_000, 7), uniforms)[:, 0]
    torch.testing.assert_close(torch.bincount(drawn, minlength=7) / 100_000, probabilities.float(), atol=1e-4, rtol=0)
    assert inverse_cdf(torch.tensor([[0.0, 1.0, 0.0]]), torch.tensor([0.0])).tolist() == [[1]]
    model = translator(12, 1)
    source, lengths = sources(4, 2)
    most = sample(model, source, lengths, LIMIT, uniforms=torch.rand(2, 20), top_k=1)
    assert [each.tokens for each in most] == [each.tokens for each in sample(model, source, lengths, LIMIT, top_k=1)]
