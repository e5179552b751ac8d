"""Guided attention: where links say pieces belong together, and that attention follows."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings

import regard
from regard.config.folder import Vocabularies
from regard.tasks.translation.guide import MIN_WEIGHT, Guide, _chunk_numbers, _term_marks, _token_kinds, guided_loss
from regard.text.batches import Batch
from regard.text.examples import Example
from regard.text.normal import tidy
from regard.text.pairs import Pair
from regard.text.punctuation import without_punctuation
from regard.text.shown_terms import annotation
from regard.text.vocabulary import BYTES, PLACEHOLDERS, TERM_MARKS, WORD_BEGINS, learn_subwords
from tests.text.test_vocabulary import subwords, texts
from tests.text.test_vocabulary import words as word_vocabulary
from tests.training.toy import LEARNS, PAIRS

TEXTS = ("He drinks tea .", "तो चहा पितो .")
LINKS = frozenset({(0, 0), (1, 2), (2, 1), (4, 4)})
"""chunks: a blank before punctuation is one of its own"""


def by_hand(text: str) -> list[int]:
    """The chunk of each piece of one of TEXTS: words, the blank, the full stop."""
    vocabulary = subwords()
    return [
        3
        if vocabulary.name(token) == WORD_BEGINS and piece.start == len(text) - 1
        else 4
        if text[piece.start : piece.end] == "."
        else text[: piece.start + 1].count(" ")
        for token, piece in zip(vocabulary.encode(text), vocabulary.pieces(text), strict=True)
    ]


def guide(links: frozenset[tuple[int, int]] = LINKS, sizes: tuple[int, int] = (5, 5), stop: bool = True) -> Guide:
    return Guide([links], [sizes], Vocabularies(subwords(), subwords()), [(stop, stop)])


def batch() -> Batch:
    source, target = map(subwords().encode, TEXTS)
    return Batch.of([Example(source, target)])


def test_pieces_are_linked_as_their_chunks_are() -> None:
    result = guide().alignment([0], batch())[0]
    source, target = map(by_hand, TEXTS)
    assert result.shape == (len(target) + 1, len(source) + 1)
    for t in range(result.shape[0]):
        for s in range(result.shape[1]):
            inside = t < len(target) and s < len(source)
            assert bool(result[t, s]) == (inside and (source[s], target[t]) in LINKS)


def test_pairs_whose_chunks_are_not_known_are_not_guided() -> None:
    assert guide().alignment([0], batch()).any()
    assert guide(sizes=(6, 5)).alignment([0], batch()).any(), "met without its full stop"
    assert not guide(sizes=(6, 5), stop=False).alignment([0], batch()).any(), "met without a comma inside"
    assert guide(stop=False).alignment([0], batch()).any()
    assert not guide(sizes=(7, 5)).alignment([0], batch()).any()
    assert not guide(sizes=(5, 4)).alignment([0], batch()).any()


def test_punctuation_removed_inside_a_pair_moves_no_links() -> None:
    """A pair that ends with a word and lost its comma has one chunk fewer, as if it had lost its full stop."""
    pairs = [Pair("Yes, Rahul", "हो, राहुल", 1), Pair("Rahul.", "राहुल.", 2)]
    known = Guide.of([*pairs, *(Pair(*pair, 1) for pair in PAIRS)], Vocabularies(subwords(), subwords()))
    bare = [without_punctuation(pair.source, pair.target) for pair in pairs]
    examples = [Example(*map(subwords().encode, sides)) for sides in bare if sides]
    comma, stop = known.alignment([0, 1], Batch.of(examples))
    assert not comma.any() and stop.any()


def test_one_step_later_every_row_moves_down() -> None:
    now, later = (guide().alignment([0], batch(), later)[0] for later in (False, True))
    assert torch.equal(later[1:], now[:-1]) and not later[0].any()


@settings(max_examples=100)
@given(texts)
def test_chunks_are_counted_as_the_vocabulary_parts_them(text: str) -> None:
    """But where a rare sign was spelled in bytes."""
    vocabulary = subwords()
    tokens = vocabulary.encode(text)
    if not tokens or any(vocabulary.name(token) in BYTES[128:] for token in tokens):
        return
    result = _chunk_numbers(torch.tensor([tokens]), _token_kinds(vocabulary), _term_marks(vocabulary))
    assert int(result.max()) + 1 == len(vocabulary.chunks(tidy(text)))


def test_the_loss_is_of_the_weight_on_links() -> None:
    weights = torch.tensor([[[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [1.0, 0, 0]]], requires_grad=True)
    linked = torch.tensor([[[True, True, False], [False, False, False], [False, True, False]]])
    result = guided_loss(weights, linked)
    assert result.item() == pytest.approx(-(np.log(0.75) + np.log(MIN_WEIGHT)) / 2, rel=1e-5)
    assert guided_loss(weights, torch.zeros_like(linked)).item() == 0


def test_words_cannot_be_guided() -> None:
    with pytest.raises(ValueError, match="expected a vocabulary of subwords"):
        Guide.of([], Vocabularies(word_vocabulary(), word_vocabulary()))


def test_attention_follows_the_links(tmp_path: Path) -> None:
    """More of its weight falls on links than without."""
    masses = []
    for guided in (0.0, 1.0):
        chosen = LEARNS | {"training.guided_attention": guided}
        out = tmp_path / str(guided)
        translator = regard.train(PAIRS, out, dev=PAIRS[:16], settings=chosen, precision="fp32", device="cpu")
        known = Guide.of([Pair(*pair, 1) for pair in PAIRS], translator.vocabularies)
        traces = translator.force_decode(*zip(*PAIRS, strict=True))
        mass, count = 0.0, 0
        for row, trace in enumerate(traces):
            example = Example(list(trace.source.tokens[:-1]), list(trace.target.tokens[:-1]))
            linked = known.alignment([row], Batch.of([example]))[0].numpy()
            mass += float((trace.weights * linked).sum())
            count += int(linked.any(1).sum())
        masses.append(mass / count)
    assert masses[1] > max(0.7, masses[0] + 0.05)


def test_a_placeholder_attends_to_its_equal() -> None:
    vocabulary = learn_subwords(["the boy sees a mango."] * 5, 60, further=PLACEHOLDERS)
    one, two = PLACEHOLDERS[2], PLACEHOLDERS[5]
    known = Guide([frozenset({(0, 0)})], [(3, 3)], Vocabularies(vocabulary, vocabulary))
    sides = f"{one} sees {two}", f"{two} the {one}"
    example = Example(*map(vocabulary.encode, sides))
    links = known.alignment([0], Batch.of([example]))[0]
    expected = {
        (target, source)
        for target, first in enumerate(example.target)
        for source, second in enumerate(example.source)
        if first == second and vocabulary.name(first) in PLACEHOLDERS
    }
    assert len(expected) == 2 and {tuple(link) for link in links.nonzero().tolist()} == expected


def test_a_term_that_is_shown_is_linked_as_its_word() -> None:
    """Also if punctuation is removed, so that there would be as many chunks."""
    vocabulary = learn_subwords(["the boy, sees a mango."] * 5, 60, further=TERM_MARKS)
    known = Guide([frozenset({(1, 1), (3, 0)})], [(4, 2)], Vocabularies(vocabulary, vocabulary), [(False, False)])
    plain, shown = "the boy sees mango", f"the boy{annotation(['mango', 'a'])} sees mango{annotation(['sees the'])}"
    rows = [
        known.alignment([0], Batch.of([Example(*map(vocabulary.encode, (source, "sees boy")))]))[0]
        for source in (plain, shown)
    ]
    pieces = vocabulary.encode(shown)
    closing = [place + 1 for place, piece in enumerate(pieces) if piece == vocabulary.tokens[TERM_MARKS[1]]]
    assert rows[1].shape[1] == len(pieces) + 1 and rows[1].any(1).tolist() == rows[0].any(1).tolist()
    sees = rows[1][0].nonzero()[:, 0].tolist()
    assert sees == list(range(sees[0], closing[1])), "mango and what is shown beside it"
    boy = rows[1][len(vocabulary.encode("sees"))].nonzero()[:, 0].tolist()
    assert boy == list(range(len(vocabulary.encode("the")), closing[0]))
