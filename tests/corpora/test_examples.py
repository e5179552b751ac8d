"""Examples of large corpora: the tokens of the texts, varied by a pure function of (seed, epoch, batch)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regard.corpora import examples as module
from regard.corpora.cache import Cache
from regard.corpora.corpus import StoredPairs, TokenizedPairs, listed_part
from regard.corpora.examples import StoredExamples, StoredPart, WordSegmentations
from regard.corpora.selection import select
from regard.corpora.tokens import StoredTokens, store_tokens, stored_vocabularies
from regard.text.examples import Example, Examples, Variety
from regard.text.pairs import Pair
from regard.text.vocabulary import Vocabulary, learn
from tests.corpora.stored import stored, written

EXTRA = [Pair("a further pair", "one more", 0)]


def corpus(folder: Path, dev: list[Pair] | None = None) -> StoredPairs:
    chosen = select([stored(written(folder / "pairs.tsv", 500))], [1.0], folder / ".regard-cache", None, dev)
    return StoredPairs(chosen, Cache(folder / ".regard-cache"), lambda *_: None, lambda _: None)


def tokenized(train: StoredPairs) -> tuple[TokenizedPairs, tuple[Vocabulary, Vocabulary]]:
    entry = train.cache.entry("vocabulary", "test")
    pairs = list(train)

    def learned() -> tuple[Vocabulary, Vocabulary]:
        return learn([each.source for each in pairs], "subwords", 90), learn(
            [each.target for each in pairs], "words", None
        )

    both = stored_vocabularies(train.cache, entry, learned)
    tokens = [store_tokens(each, entry, train.cache, lambda *_: None) for each in train.selection.texts]
    return TokenizedPairs(train, tokens, None), both


def made(folder: Path, variety: Variety, seed: int = 1) -> tuple[StoredExamples, Examples]:
    """Examples in files, and the same in memory."""
    train = corpus(folder)
    tokens, both = tokenized(train)
    listed = listed_part(EXTRA, *both)
    parts = [StoredPart(train.selection.texts[0], tokens.tokens[0]), listed]
    examples = StoredExamples(parts, tokens.order(listed), both, variety, seed)
    return examples, Examples([*train, *EXTRA], *both, variety, seed)


def epoch(some: StoredExamples, number: int) -> list[tuple[list[int], list[Example]]]:
    batches = some.epoch(number, 10, 200)
    return [batches.batch(index) for index in range(len(batches))]


def test_without_variation_they_are_those_in_memory(tmp_path: Path) -> None:
    some, listed = made(tmp_path, Variety())
    batches = epoch(some, 1)
    examples = [example for _, each in batches for example in each]
    assert sorted(examples) == sorted(listed.plain) and len(some) == len(listed)
    rows = [row for each, _ in batches for row in each]
    assert len(set(rows)) == len(rows)
    assert all(len(each) <= 10 for each, _ in batches)


def test_forms_without_segmentation(tmp_path: Path) -> None:
    some, listed = made(tmp_path, Variety(lower_case=0.99, no_stop=0.99, no_punctuation=0.99))
    examples = [example for _, each in epoch(some, 1) for example in each]
    expected = listed.epoch(1)
    same = len(set(map(str, examples)) & set(map(str, expected)))
    assert same > 0.9 * len({str(each) for each in expected})


def test_segmentations_vary_and_spell_the_same_words(tmp_path: Path) -> None:
    some, _ = made(tmp_path, Variety(segmentation=0.5))
    source = tokenized(corpus(tmp_path))[1][0]
    plain = {
        row: example
        for rows, examples in epoch(made(tmp_path, Variety())[0], 1)
        for row, example in zip(rows, examples, strict=True)
    }
    first, second = ({row: e for rows, es in epoch(some, n) for row, e in zip(rows, es, strict=True)} for n in (1, 2))
    assert first.keys() == second.keys() == plain.keys()
    assert sum(first[row] != second[row] for row in plain) > 0.5 * len(plain)
    for row, example in first.items():
        assert source.decode(example.source) == source.decode(plain[row].source)
        assert example.target == plain[row].target  # words have one segmentation
    assert some.growth > 1.1
    widest = [max(len(each.source) for each in es) + 1 for _, es in epoch(some, 1)]
    sizes = [width * len(es) for width, (_, es) in zip(widest, epoch(some, 1), strict=True)]
    assert np.mean(sizes) < 1.15 * 200  # the limit holds on average


def test_seed_epoch_and_batch_fix_them(tmp_path: Path) -> None:
    variety = Variety(0.1, 0.2, 0.2, 0.2)
    first = epoch(made(tmp_path, variety)[0], 3)
    again = made(tmp_path, variety)[0].epoch(3, 10, 200)
    for index in reversed(range(len(first))):  # in any order, as when a run is resumed
        assert again.batch(index) == first[index]
    assert epoch(made(tmp_path, variety, seed=2)[0], 3) != first != epoch(made(tmp_path, variety)[0], 4)


def test_what_is_remembered_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tokenized(corpus(tmp_path))[1][0]
    texts = [pair.source for pair in corpus(tmp_path)][:100]
    whole = WordSegmentations(source, 0.3, 1)(texts, np.random.default_rng(1))
    monkeypatch.setattr(module, "MAX_WORDS", 5)
    few = WordSegmentations(source, 0.3, 1)
    assert few(texts, np.random.default_rng(1)) == whole
    assert len(few._tokens) + len(few._older) <= 10


def test_pairs_as_a_sequence(tmp_path: Path) -> None:
    train = corpus(tmp_path)
    pairs = list(train)
    assert len(train) == len(pairs) and train[3] == pairs[3] and train[-1] == pairs[-1] and train[2:9:3] == pairs[2:9:3]
    assert train.pairs(train.sample(10**6)) == pairs
    sample = train.sample(100)
    assert 60 < len(sample) < 140 and len(set(sample.tolist())) == len(sample)
    assert set(train.pairs(sample)) <= set(pairs)


def test_tokens_are_made_once_for_a_vocabulary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = corpus(tmp_path)
    tokens, _ = tokenized(train)
    entries = sorted(path.name for path in train.cache.folder.iterdir())
    assert [name.split("-")[0] for name in entries] == ["texts", "tokens", "vocabulary"]
    with monkeypatch.context() as patch:
        patch.setattr("regard.corpora.tokens._write_tokens", None)
        again, _ = tokenized(train)
    assert np.array_equal(again.tokens[0].source.values, tokens.tokens[0].source.values)
    other = train.cache.entry("vocabulary", "other")
    stored_vocabularies(train.cache, other, lambda: (learn(["ab abc"] * 9, "subwords", 20),) * 2)
    store_tokens(train.selection.texts[0], other, train.cache, lambda *_: None)
    assert len(list(train.cache.folder.glob("tokens-*"))) == 2
    damaged = train.cache.folder / next(name for name in entries if name.startswith("tokens"))
    (damaged / "target").write_bytes(b"\0\0")
    with pytest.raises(ValueError, match="damaged; delete it"):
        StoredTokens.open(damaged)


def test_token_limits(tmp_path: Path) -> None:
    train = corpus(tmp_path)
    tokens, _ = tokenized(train)
    assert tokens.limit == 400 and tokens.skipped() == []
    lengths = np.maximum(*tokens.lengths(np.concatenate(list(tokens.rows()))))
    limited = TokenizedPairs(train, tokens.tokens, int(np.median(lengths)))
    rows = np.concatenate(list(limited.rows()))
    assert len(rows) == (lengths <= limited.limit).sum() < len(train)
    assert limited.longest_source() == 1 + tokens.lengths(rows)[0].max()
    (report,) = limited.skipped()
    assert (
        f"{len(train) - len(rows):,} lines skipped, longer than {limited.limit} tokens (training.max_tokens): "
        in report
    )


def test_a_limit_that_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text("".join(f"two words {n}\tand three more {n}\n" for n in range(30)))
    chosen = select([stored(file)], [1.0], tmp_path / ".regard-cache", None, None)
    train = StoredPairs(chosen, Cache(tmp_path / ".regard-cache"), lambda *_: None, lambda _: None)
    tokens, _ = tokenized(train)
    with pytest.raises(ValueError, match="no pair left: all are longer than 1 tokens"):
        TokenizedPairs(train, tokens.tokens, 1).skipped()
