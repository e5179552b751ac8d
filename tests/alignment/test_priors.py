"""What was learned from one text helps with another; saved, it is the same; a damaged file is refused."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

import regard
from regard.alignment.corpus import corpus_of
from regard.alignment.error_rate import error_rate
from regard.alignment.links import read_gold
from regard.alignment.priors import Priors, prior_counts
from regard.alignment.priors_file import KEY, load_priors
from regard.alignment.statistical import AlignmentResult
from tests.alignment.test_statistical import SAMPLE, texts

KNOWN = len(read_gold(SAMPLE / "links.talp"))


@pytest.fixture(scope="module")
def learned() -> AlignmentResult:
    """From the sample, without the sentences that have gold links."""
    return regard.align(texts()[KNOWN:])


@pytest.fixture
def file(learned: AlignmentResult, tmp_path: Path) -> Path:
    learned.save(tmp_path / "priors")
    return tmp_path / "priors"


def test_new_text_is_aligned_with_what_was_learned(learned: AlignmentResult, file: Path) -> None:
    """All new sentences together, and each alone, which without priors has nothing to go by."""
    gold = read_gold(SAMPLE / "links.talp")
    new = texts()[:KNOWN]
    assert regard.align(new).aer(gold) > 0.1
    result = regard.align(new, priors=file)
    assert result.aer(gold) < 0.07
    alone = [regard.align([pair], priors=learned.priors).links[0] for pair in new[:25]]
    assert error_rate(alone, gold[:25]).aer < 0.08
    assert regard.align(new, priors=learned.priors).links == result.links


def test_counts_are_found_again_and_the_rest_is_elsewhere(learned: AlignmentResult) -> None:
    """Whatever the new text is, no count is lost: each is of a word pair here, or elsewhere, for its words."""
    priors = learned.priors
    assert priors is not None
    words = corpus_of([(source.split(), target.split()) for source, target in texts()[:7]] + [(["new"], ["नवीन"])])
    zeros = np.zeros(len(words.source_of))
    counts = prior_counts(words, zeros, zeros, priors)
    known = {
        (priors.words.sources[one], priors.words.targets[other]): count
        for one, other, count in zip(priors.words.source_of, priors.words.target_of, priors.counts, strict=True)
    }
    here = {
        (words.sources[one], words.targets[other]): count
        for one, other, count in zip(words.source_of, words.target_of, counts.forward, strict=True)
    }
    assert here == pytest.approx({pair: known.get(pair, 0) for pair in here})
    for number, word in enumerate(words.sources):
        total = sum(count for (one, _), count in known.items() if one == word)
        assert counts.source_elsewhere[number] + counts.forward[words.source_of == number].sum() == pytest.approx(total)
    assert counts.target_null.sum() + counts.null_elsewhere[0] == pytest.approx(priors.target_null.sum())


def test_what_is_learned_in_two_parts_is_added_up(learned: AlignmentResult, file: Path, tmp_path: Path) -> None:
    middle = KNOWN + 800
    first = regard.align(texts()[KNOWN:middle])
    both = regard.align(texts()[middle:], priors=first.priors).priors
    assert both is not None and learned.priors is not None
    words, whole = both.words, learned.priors.words
    counts = dict(zip(words.sources, words.source_counts.tolist(), strict=True))
    assert counts == dict(zip(whole.sources, whole.source_counts.tolist(), strict=True))
    assert both.counts.sum() == pytest.approx(learned.priors.counts.sum(), rel=0.05)
    gold = read_gold(SAMPLE / "links.talp")
    assert regard.align(texts()[:KNOWN], priors=both).aer(gold) < 0.08


def test_a_file_has_all(learned: AlignmentResult, file: Path) -> None:
    before, after = learned.priors, load_priors(file)
    assert before is not None
    assert after.words.sources == before.words.sources and after.words.targets == before.words.targets
    for name in ("counts", "target_null", "source_null", "forward_jumps", "backward_jumps"):
        np.testing.assert_allclose(getattr(after, name), getattr(before, name), rtol=1e-6)
    np.testing.assert_array_equal(after.words.source_of, before.words.source_of)
    with safe_open(file, "numpy") as content:
        assert content.metadata() == {KEY: "1"}


def test_odd_words_survive(tmp_path: Path) -> None:
    regard.align([("a\u2028b \ud800 é\x00", "x\u00a0y 😀")] * 3).save(tmp_path / "odd")
    assert "\ud800" in load_priors(tmp_path / "odd").words.sources


def changed(file: Path, metadata: dict[str, str] | None = None, **arrays: np.ndarray | None) -> Path:
    with safe_open(file, "numpy") as content:
        all_arrays = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118, not a dict
    all_arrays |= arrays
    save_file({k: v for k, v in all_arrays.items() if v is not None}, file, metadata or {KEY: "1"})
    return file


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"counts": np.zeros(3, np.float32)}, "source_of: expected shape"),
        ({"counts": None}, "got another safetensors file"),
        ({"more": np.zeros(3, np.float32)}, "got another safetensors file"),
        ({"source_of": np.zeros(3, np.int64)}, "source_of: expected int32, got int64"),
        ({"sources": np.frombuffer(b'["a", "a"]', np.uint8)}, "sources: expected distinct words"),
        ({"sources": np.frombuffer(b'["a", 3]', np.uint8)}, "sources: expected a JSON list of words"),
        ({"sources": np.frombuffer(b"[" * 100_000, np.uint8)}, "sources: expected a JSON list"),
        ({"sources": np.frombuffer(b'["a"]', np.uint8)}, "source_counts: expected shape"),
        ({"forward_jumps": np.zeros((2, 17))}, "forward_jumps: expected numbers above 0"),
        ({"backward_jumps": np.full((2, 17), np.nan)}, "backward_jumps: expected finite numbers"),
        ({"forward_jumps": np.ones((2, 3))}, "forward_jumps: expected shape"),
    ],
)
def test_a_damaged_file_is_refused(arrays: dict[str, np.ndarray | None], message: str, file: Path) -> None:
    with pytest.raises(ValueError, match=message):
        load_priors(changed(file, **arrays))


def test_ids_and_counts_out_of_range_are_refused(learned: AlignmentResult, file: Path) -> None:
    priors = learned.priors
    assert priors is not None
    size = len(priors.counts)
    for value in (-1, 10**6):
        with pytest.raises(ValueError, match="source_of: expected"):
            load_priors(changed(file, source_of=np.full(size, value, np.int32)))
        learned.save(file)
    with pytest.raises(ValueError, match="counts: expected finite numbers of at least 0"):
        load_priors(changed(file, counts=np.full(size, np.inf, np.float32)))


def test_other_files_are_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such file; expected a file that `regard align --save` wrote"):
        load_priors(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="priors of format '2'; expected format 1"):
        load_priors(changed(file, {KEY: "2"}))
    with pytest.raises(ValueError, match=r"expected a file that .* wrote, got another safetensors file"):
        load_priors(changed(file, {"other": "1"}))
    (tmp_path / "text").write_text("a\tb\n")
    with pytest.raises(ValueError, match=r"expected a file that .* wrote, got something else"):
        load_priors(tmp_path / "text")
    (tmp_path / "cut").write_bytes(file.read_bytes()[:-7])
    with pytest.raises(ValueError, match="got something else"):
        load_priors(tmp_path / "cut")


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(*[st.lists(st.text("abé1", max_size=5), max_size=4)] * 2), max_size=5))
def test_any_text_can_be_aligned_with_priors(pairs: list[tuple[list[str], list[str]]]) -> None:
    priors = PRIORS
    rows = [(" ".join(source), " ".join(target)) for source, target in pairs]
    result = regard.align(rows, priors=priors)
    for (source, target), links in zip(rows, result.links, strict=True):
        assert all(0 <= one < len(source.split()) and 0 <= other < len(target.split()) for one, other in links)


def _small() -> Priors:
    priors = regard.align([("a b", "a é"), ("ab 1", "bé 1")] * 3).priors
    assert priors is not None
    return priors


PRIORS = _small()
