"""The classifier: what it looks at adds up, padding is nothing, sentences are pooled as by hand."""

from dataclasses import replace

import pytest
import torch

from regard.models.documents.classifier import ClassifierOptions, TextClassifier
from regard.models.documents.levels import SentenceParts
from regard.models.documents.words import pair_buckets
from regard.text.documents import DocumentBatch, Reader
from regard.text.vocabulary import learn_words

TEXTS = ["Good films are good. Are they? They are!", "bad", "Nobody likes bad films. So what.", ""]
READER = Reader(learn_words([*TEXTS, "goods badness"]))
SMALL = ClassifierOptions(
    width=8, hidden=6, heads=2, feedforward=12, attention=5, neighbours=64, positions=4, queries=2
)
KINDS = ["counts", "embeddings", "convolution", "rnn", "attention"]


def built(**changes: object) -> TextClassifier:
    torch.manual_seed(3)
    return TextClassifier(replace(SMALL, **changes), len(READER.vocabulary), len(READER.spelling), 3).eval()


def batch(texts: list[str]) -> DocumentBatch:
    return DocumentBatch.of([READER(text) for text in texts], READER.spelling)


@pytest.mark.parametrize("hierarchical", [False, True])
@pytest.mark.parametrize("states", KINDS)
def test_weights_add_up_to_1_over_the_words(states: str, hierarchical: bool) -> None:
    model, given = built(states=states, hierarchical=hierarchical), batch(TEXTS)
    result = model(given, weights=True)
    assert result.logits.shape == (4, 3) and result.weights.shape == (4, 2, given.source.shape[1])
    assert torch.allclose(result.weights.sum(-1), torch.ones(4, 2))
    assert not result.weights[~given.attention_mask[:, None].expand_as(result.weights)].any()
    assert torch.allclose(model(given).logits, result.logits)  # to look changes nothing


@pytest.mark.parametrize("hierarchical", [False, True])
@pytest.mark.parametrize("states", KINDS)
def test_a_text_is_the_same_alone_and_among_longer_ones(states: str, hierarchical: bool) -> None:
    model = built(states=states, hierarchical=hierarchical)
    together = model(batch(TEXTS), weights=True)
    for row, text in enumerate(TEXTS):
        alone = model(batch([text]), weights=True)
        size = alone.weights.shape[-1]
        assert torch.allclose(alone.logits[0], together.logits[row], atol=1e-5)
        assert torch.allclose(alone.weights[0], together.weights[row, :, :size], atol=1e-5)


def test_hierarchical_weights_are_those_of_word_and_sentence() -> None:
    model, given = built(states="embeddings", hierarchical=True), batch(TEXTS[:1])
    result = model(given, weights=True).weights[0]  # [queries, words]
    words = model.judges[0].words(given)
    states = [words[:, a:b] for a, b in ((0, 5), (5, 8), (8, 11))]
    inside = [model.judges[0].level.words(part, weights=True) for part in states]
    vectors = torch.stack([each.context[0, 0] for each in inside])[None]
    above = torch.cat([model.judges[0].level.recurrence(vectors, torch.tensor([3]))[0], vectors], -1)
    outside = model.judges[0].level.sentences(above, weights=True).weights[0]  # [queries, sentences]
    expected = torch.cat([outside[:, n : n + 1] * each.weights[0] for n, each in enumerate(inside)], -1)
    assert torch.allclose(result, expected, atol=1e-6)


def test_sentences_are_cut_and_put_together() -> None:
    parts = SentenceParts(torch.tensor([[2, 3, 0], [1, 1, 2]]))
    states = torch.arange(10).view(2, 5)
    assert parts.cut(states)[parts.real].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert parts.lengths.tolist() == [2, 3, 1, 1, 2]
    assert parts.joined(torch.arange(1, 6)[:, None])[..., 0].tolist() == [[1, 2, 0], [3, 4, 5]]
    assert parts.owners(5)[0].tolist() == [0, 0, 1, 1, 1] and parts.owners(5)[1, :4].tolist() == [0, 1, 2, 2]
    assert parts.spread(parts.real.float(), 5).tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]]


def test_every_representation_of_a_word_counts() -> None:
    model = built(states="embeddings", positions=0)
    same = model(batch(["films good", "good films"])).logits
    assert not torch.allclose(same[0], same[1])  # neighbours
    model = built(states="embeddings", positions=0, neighbours=0)
    same = model(batch(["films good", "good films"])).logits
    assert torch.allclose(same[0], same[1], atol=1e-6)
    unknown = model(batch(["goodly", "badly"])).logits  # neither was in training; their spellings differ
    assert not torch.allclose(unknown[0], unknown[1])
    model = built(states="embeddings", positions=0, neighbours=0, spelling=False)
    unknown = model(batch(["goodly", "badly"])).logits
    assert torch.allclose(unknown[0], unknown[1])


def test_places_of_the_hash_depend_on_both_words() -> None:
    result = pair_buckets(torch.tensor([[5, 6, 7], [6, 5, 7]]), 10_007)
    assert result[0, 0] != result[1, 1] and result[0, 1] != result[1, 0] and result[0, 2] != result[1, 2]
    assert result.min() >= 0 and result.max() < 10_007


def test_training_leaves_words_out_but_never_all() -> None:
    model = built(left_out=0.9).train()
    for _ in range(20):
        result = model(batch(TEXTS), weights=True)
        assert torch.allclose(result.weights.sum(-1), torch.ones(4, 5)) and result.logits.isfinite().all()


def test_a_sparse_pattern_sees_what_it_may() -> None:
    from regard.models.transformer.layers import AttentionOptions

    text = " ".join(TEXTS[0].lower().split() * 20)
    other = "nobody" + text[text.index(" ") :]
    options = {"states": "attention", "positions": 0, "queries": 1, "neighbours": 0}
    near = built(**options, encoder=AttentionOptions(pattern="window(2)"))
    hub = built(**options, encoder=AttentionOptions(pattern="window(2) | global(0)"))

    def last_states(model: TextClassifier, given: str) -> torch.Tensor:
        one = batch([given])
        judge = model.judges[0]
        return judge.level.states(judge.words(one), one.attention_mask, one.lengths)[0, -1]

    assert torch.allclose(last_states(near, text), last_states(near, other), atol=1e-6)
    assert not torch.allclose(last_states(hub, text), last_states(hub, other), atol=1e-6)


def test_judges_vote() -> None:
    model, given = built(states="embeddings + convolution + rnn"), batch(TEXTS)
    result = model(given, weights=True)
    assert result.each.shape == (3, 4, 3) and result.weights.shape[1] == 3 * 2
    assert torch.allclose(result.logits, result.each.mean(0))
    for number, judge in enumerate(model.judges):
        logits, weights = judge(given, None, weights=True)
        assert torch.equal(logits, result.each[number])
        assert torch.equal(weights, result.weights[:, 2 * number : 2 * number + 2])


def test_weighted_members() -> None:
    """The weights are in the order of `states`; in the model, `tfidf` is the last member."""
    states = {"states": "embeddings + tfidf + convolution"}
    equal, weighted = built(**states), built(**states, member_weights="0.5 + 0.2 + 0.7")
    given = batch(TEXTS)
    output = weighted(given)
    assert torch.equal(output.each, equal(given).each) and torch.equal(equal(given).logits, output.each.mean(0))
    expected = 0.5 * output.each[0] + 0.7 * output.each[1] + 0.2 * output.each[2]
    assert torch.allclose(output.logits, expected, atol=1e-6)
    assert weighted.options.members == ["embeddings", "convolution", "tfidf"]


@pytest.mark.parametrize("text", ["0.5", "0.5 + 0.5 + 0", "0 + 0", "1 + -1", "1 + inf", "nan + 1", "a + b", "1, 2"])
def test_weights_that_do_not_fit_the_members_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="member_weights: expected 2 numbers of at least 0, one for each member"):
        replace(SMALL, states="embeddings + convolution", member_weights=text)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="states: expected counts"):
        ClassifierOptions(states="rnn + lstm")
    with pytest.raises(ValueError, match="queries: expected a whole number"):
        ClassifierOptions(queries=0)
