"""The statistical aligner: links that are right, the same each time, for any input."""

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
import regard.samples
from regard.alignment.error_rate import error_rate
from regard.alignment.links import read_gold
from regard.alignment.statistical import AlignmentResult, statistical_links
from regard.alignment.tokens import split_punctuation
from regard.look.trace import Trace

Pairs = list[tuple[list[str], list[str]]]


def test_words_and_their_order_are_found() -> None:
    """Verbs last, articles that are said by none, one word in two."""
    subjects = [("birds", "vögel"), ("dogs", "hunde"), ("cats", "katzen"), ("boys", "jungen"), ("girls", "mädchen")]
    verbs = [("see", "sehen"), ("hear", "hören"), ("love", "lieben"), ("wake", "wecken"), ("find", "finden")]
    pairs: Pairs = []
    for (one, eins), (verb, tun), (two, zwei) in product(subjects, verbs, subjects):
        if one != two:
            pairs.append((["the", one, verb, two], [eins, zwei, tun]))
    result = statistical_links(pairs)
    wanted = {(1, 0), (3, 1), (2, 2)}
    assert all(wanted <= links for links in result)
    assert sum(len(links) for links in result) <= len(pairs) * 4


def test_the_other_way_round_gives_the_same_links() -> None:
    turned = [(target, source) for source, target in sample()[0]]
    there, back = statistical_links(sample()[0]), statistical_links(turned)
    same = sum(one == {(source, target) for target, source in two} for one, two in zip(there, back, strict=True))
    assert same > 0.99 * len(there)


def sample() -> tuple[Pairs, int]:
    """The sample corpus, the sentences with links written by hand first, and how many these are."""
    folder = Path(regard.samples.__file__).parent / "english-marathi"
    texts = [(folder / f"links.{end}").read_text("utf-8").splitlines() for end in ("src", "tgt")]
    pairs = [(ours.lower().split(), theirs.split()) for ours, theirs in zip(*texts, strict=True)]
    known = len(pairs)
    for line in (folder / "train.tsv").read_text("utf-8").splitlines():
        source, target = line.split("\t")[:2]
        pairs.append((split_punctuation(source.lower()).split(), split_punctuation(target).split()))
    return pairs, known


def test_the_sample_corpus_is_linked_as_people_do_and_the_same_each_time() -> None:
    pairs, known = sample()
    links = statistical_links(pairs)
    gold = read_gold(Path(regard.samples.__file__).parent / "english-marathi" / "links.talp")
    assert error_rate(links[:known], gold).aer < 0.07
    assert links == statistical_links(pairs)


def test_sides_without_words_have_no_links() -> None:
    assert statistical_links([]) == []
    assert statistical_links([([], []), (["a"], []), ([], ["b"])]) == [frozenset()] * 3
    result = statistical_links([([], ["b"]), *[(["a"], ["b"])] * 20, (["a"], [])])
    assert result == [frozenset(), *[frozenset({(0, 0)})] * 20, frozenset()]


def test_very_long_sentences() -> None:
    long = [f"word{number}" for number in range(200)]
    pairs = [(long, long), (long, long[:1]), (long[:1], long), *[([word], [word]) for word in long]]
    result = statistical_links(pairs)
    assert len({(number, number) for number in range(200)} & result[0]) > 190
    assert (0, 0) in result[1] and (0, 0) in result[2]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(*[st.lists(st.text(max_size=3), max_size=4)] * 2), max_size=6))
def test_any_text_has_links_within_it(pairs: Pairs) -> None:
    result = statistical_links(pairs)
    assert len(result) == len(pairs)
    for (source, target), links in zip(pairs, result, strict=True):
        assert all(0 <= one < len(source) and 0 <= two < len(target) for one, two in links)


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.5])
def test_the_threshold_is_a_probability(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold: expected more than 0 and at most 1"):
        statistical_links([(["a"], ["b"])], threshold)


# regard.align


SAMPLE = Path(regard.samples.__file__).parent / "english-marathi"


def texts() -> list[tuple[str, str]]:
    """The sample corpus as texts, the sentences with links written by hand first."""
    return [(" ".join(source), " ".join(target)) for source, target in sample()[0]]


@pytest.fixture(scope="module")
def aligned() -> AlignmentResult:
    return regard.align(texts())


def test_links_probabilities_and_the_error_rate(aligned: AlignmentResult) -> None:
    gold = read_gold(SAMPLE / "links.talp")
    known = len(gold)
    result = regard.align(texts()[:known])
    assert result.aer(gold) == error_rate(result.links, gold).aer == result.error_rate(SAMPLE / "links.talp").aer
    assert error_rate(aligned.links[:known], gold).aer < 0.07 < result.aer(gold)
    for links, probabilities in zip(aligned.links[:200], aligned.probabilities[:200], strict=True):
        assert links == {link for link, probability in probabilities.items() if probability >= 0.5}
        assert all(0.01 <= probability <= 1.00001 for probability in probabilities.values())
    assert len(aligned.probabilities) == len(aligned.links) == len(texts())
    most = regard.align(texts()[:known], min_probability=0.2)
    assert all(few <= many for few, many in zip(result.links, most.links, strict=True)) and most.links != result.links


def test_case_and_punctuation_do_not_matter() -> None:
    pairs = [
        ("The dog sleeps.", "Le chien dort."),
        ("the DOG barks", "le Chien aboie"),
        ("A cat sleeps", "Un chat dort"),
    ]
    plain = [("the dog sleeps", "le chien dort"), ("the dog barks", "le chien aboie"), ("a cat sleeps", "un chat dort")]
    assert regard.align(pairs * 9).links == regard.align(plain * 9).links


def test_equal_pairs_count_as_often_as_they_occur() -> None:
    """As if each were computed: with a mark that makes them different, and that nothing else depends on."""
    pairs = texts()[:300]
    repeated = [*pairs, *pairs, *pairs[:50]]
    result = regard.align(repeated)
    assert result.links[:300] == result.links[300:600] and result.links[:50] == result.links[600:]
    assert result.priors is not None
    total = sum(len(source.split()) for source, _ in repeated)
    assert result.priors.words.source_counts.sum() == total
    assert result.links != regard.align([*pairs, *pairs[:50]]).links[:300]


def test_files_are_read_as_train_reads_them(tmp_path: Path, aligned: AlignmentResult) -> None:
    pairs = texts()[:40]
    (tmp_path / "pairs.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in pairs), encoding="utf-8")
    for side, name in enumerate(("a.en", "a.mr")):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    expected = regard.align(pairs).links
    assert regard.align(tmp_path / "pairs.tsv").links == expected
    assert regard.align([tmp_path / "a.en", str(tmp_path / "a.mr")]).links == expected


def test_pairs_that_get_no_links() -> None:
    report: list[str] = []
    pairs = [("a b", "c d"), ("", "c"), (" ", ""), ("x " * 1500, "y"), ("a", "y" * 20_000), ("a", "c")]
    result = regard.align(pairs, notify=report.append)
    assert [bool(links) for links in result.links][1:5] == [False] * 4
    assert report == ["2 lines skipped, longer than 2,000 characters, no links there: 4, 5"]
    nothing = regard.align([("", "a")])
    assert nothing.links == [frozenset()] and nothing.priors is None
    with pytest.raises(ValueError, match="nothing was learned"):
        nothing.save("/nowhere")
    assert regard.align([]).links == []


def test_text_without_spaces() -> None:
    pairs = [
        ("I drink tea", "我喝茶。"),
        ("I drink water", "我喝水。"),
        ("you drink tea", "你喝茶。"),
        ("tea", "茶"),
    ] * 8
    result = regard.align(pairs, tokenize=True)
    assert result.pairs[0] == ("I drink tea", "我 喝 茶 。")
    assert {(0, 0), (1, 1), (2, 2)} <= result.links[0]
    report: list[str] = []
    regard.align([("a b", "我喝茶我喝水你喝茶你喝水我喝茶")], notify=report.append)
    assert report == ["1 lines have long tokens of a script without spaces; expected spaces, or --tokenize"]


def test_a_trace_has_the_probabilities_between_tokens(aligned: AlignmentResult) -> None:
    trace = aligned.trace(0)
    source, target = aligned.pairs[0]
    assert [span.text for span in trace.source.pieces] == source.split()
    assert [span.text for span in trace.target.words] == target.split()
    for (one, other), probability in aligned.probabilities[0].items():
        assert trace.weights[other, one] == pytest.approx(probability)
    assert (trace.weights > 0).sum() == len(aligned.probabilities[0])
    Trace.from_dict(trace.as_dict())


def test_progress_and_threads() -> None:
    seen: list[tuple[int, int]] = []
    one = regard.align(texts()[:100], threads=1, progress=lambda *numbers: seen.append(numbers))
    assert seen == [(number, len(seen)) for number in range(1, len(seen) + 1)] and len(seen) > 5
    assert list(one.probabilities) == list(regard.align(texts()[:100], threads=2).probabilities)


@pytest.mark.parametrize("probability", [0.0, -1.0, 1.5])
def test_the_smallest_probability_is_one(probability: float) -> None:
    with pytest.raises(ValueError, match="min_probability: expected more than 0 and at most 1"):
        regard.align([("a", "b")], min_probability=probability)
