"""Texts as a classifier reads them."""

import torch

from regard.text.documents import LONGEST_SENTENCE, DocumentBatch, Reader
from regard.text.vocabulary import learn_words

READER = Reader(learn_words(["Good films are good.", "Bad films are bad!"]))


def test_pieces_lie_in_the_text_as_it_was_written() -> None:
    text = "GOOD films, unseen"
    document = READER(text)
    assert [text[piece.start : piece.end] for piece in document.pieces] == ["GOOD", "films", ",", "unseen"]
    assert document.words == ["good", "films", ",", "unseen"]
    known = READER.vocabulary.tokens
    unknown = known["<unk>"]
    assert [piece.token for piece in document.pieces] == [known["good"], known["films"], unknown, unknown]


def test_sentences() -> None:
    assert READER("One two. Three?! Four").sentences == [3, 3, 1]
    assert READER("...").sentences == [3] and READER("").sentences == []
    assert READER("a " * (2 * LONGEST_SENTENCE + 1)).sentences == [LONGEST_SENTENCE, LONGEST_SENTENCE, 1]


def test_a_batch() -> None:
    documents = [READER("good films are good"), READER("films"), READER("")]
    batch = DocumentBatch.of(documents, READER.spelling, [1, 0, 1])
    assert batch.source.shape == batch.word_indices.shape == (3, 4) and batch.lengths.tolist() == [4, 1, 1]
    assert batch.attention_mask.tolist() == [[True] * 4, [True, False, False, False], [True, False, False, False]]
    assert batch.source[2].tolist() == [0] * 4 and batch.tokens == 6
    words = ["", "good", "films", "are"]
    assert len(batch.ngrams) == len(words)  # each different word once
    for row, word in zip(batch.ngrams.tolist(), words, strict=True):
        assert [number for number in row if number] == list(READER.spelling(word))
    assert batch.word_indices.tolist() == [[1, 2, 3, 1], [2, 0, 0, 0], [0, 0, 0, 0]]
    assert batch.sentences.tolist() == [[4], [1], [1]]
    assert batch.labels is not None and torch.equal(batch.labels, torch.tensor([1, 0, 1]))
