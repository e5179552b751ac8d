"""Examples are a pure function of (seed, epoch), and say what the pairs say."""

import pytest

from regard.text.examples import Example, Examples, Variety
from regard.text.normal import tidy
from regard.text.pairs import Pair
from regard.text.punctuation import without_punctuation, without_stop
from regard.text.vocabulary import learn_subwords
from tests.text.test_vocabulary import sentences, subwords, words

BOTH_WAYS = [*sentences(), *((target, source) for source, target in sentences())]
PAIRS = [Pair(source, target, line) for line, (source, target) in enumerate(BOTH_WAYS, start=1)]
VARIETIES = [
    Variety(segmentation=0.3),
    Variety(lower_case=0.5),
    Variety(no_stop=0.5),
    Variety(lower_case=0.4, no_stop=0.4),
    Variety(no_punctuation=0.5),
    Variety(0.3, 0.4, 0.4),
    Variety(0.3, 0.4, 0.4, 0.4),
]


def examples(variety: Variety, seed: int = 7) -> Examples:
    return Examples(PAIRS, subwords(), subwords(), variety, seed)


def texts(result: list[Example]) -> list[tuple[str, str]]:
    return [(subwords().decode(example.source), subwords().decode(example.target)) for example in result]


def forms(pair: Pair, variety: Variety) -> set[tuple[str, str]]:
    """What a pair may become."""
    bare = without_stop(pair.source, pair.target)
    wanted = {(pair.source, pair.target)} | ({bare} if bare and variety.no_stop else set())
    unmarked = without_punctuation(pair.source, pair.target)
    wanted |= {unmarked} if unmarked and variety.no_punctuation else set()
    return wanted | ({(source.lower(), target) for source, target in wanted} if variety.lower_case else set())


@pytest.mark.parametrize("variety", VARIETIES)
def test_an_epoch_is_a_pure_function_of_seed_and_number(variety: Variety) -> None:
    one, two = examples(variety), examples(variety)
    forwards = [one.epoch(number) for number in range(4)]
    backwards = [two.epoch(number) for number in reversed(range(4))][::-1]
    assert forwards == backwards
    assert one.epoch(2) == forwards[2]
    assert all(forwards[0] != other for other in forwards[1:])
    assert examples(variety, seed=8).epoch(0) != forwards[0]


@pytest.mark.parametrize("variety", VARIETIES)
def test_examples_say_what_the_pairs_say(variety: Variety) -> None:
    made = examples(variety)
    seen: list[set[tuple[str, str]]] = [set() for _ in PAIRS]
    for number in range(12):
        for pair, text, known in zip(PAIRS, texts(made.epoch(number)), seen, strict=True):
            assert text in forms(pair, variety)
            known.add(text)
    met = sum(map(len, seen))
    assert met >= 0.8 * sum(len(forms(pair, variety)) for pair in PAIRS)  # nearly all forms turn up in twelve epochs


def test_shares_are_as_asked_for() -> None:
    made = examples(Variety(lower_case=0.25, no_stop=0.75))
    result = [text for number in range(20) for text in texts(made.epoch(number))]
    english = [source for source, _ in result if source.isascii()]
    lower = sum(source == source.lower() for source in english) / len(english)
    bare = sum(not target.endswith(".") for _, target in result) / len(result)
    able = sum(without_stop(pair.source, pair.target) is not None for pair in PAIRS) / len(PAIRS)
    assert lower == pytest.approx(0.25, abs=0.05)
    assert bare == pytest.approx(1 - able + 0.75 * able, abs=0.05)


def test_without_variety_they_are_plain() -> None:
    made = examples(Variety())
    plain = [Example(subwords().encode(pair.source), subwords().encode(pair.target)) for pair in PAIRS]
    assert made.plain == plain and made.epoch(0) == plain and made.epoch(9) == plain
    assert len(made) == len(PAIRS)
    assert examples(Variety(0.3, 0.4, 0.4)).plain == plain


def test_both_sides_are_cut_in_new_ways() -> None:
    made = examples(Variety(segmentation=0.3))
    plain, other = made.plain, made.epoch(1)
    assert sum(one.source != two.source for one, two in zip(plain, other, strict=True)) > 10
    assert sum(one.target != two.target for one, two in zip(plain, other, strict=True)) > 10
    assert texts(other) == texts(plain)


@pytest.mark.parametrize("variety", [Variety(segmentation=0.3), Variety(0.3, 0.4, 0.4), Variety(0.0, 0.4, 0.4)])
def test_words_are_examples_too(variety: Variety) -> None:
    """They have one segmentation; the other varieties are met."""
    made = Examples(PAIRS, words(), words(), variety, 7)
    plain = made.plain
    for one, two in zip(plain, made.epoch(1), strict=True):
        assert two.source in (one.source, one.source[:-1])


@pytest.mark.parametrize("segmentation", [0.0, 0.2])
def test_lower_case_is_tidied_again(segmentation: float) -> None:
    """J with a caron has no letter of its own, j with one has: lower case undoes NFC."""
    pair = Pair("J\u030c", "x", 1)
    vocabulary = learn_subwords(["\u01f0 j\u030c x"] * 4, 60)
    result = Examples([pair], vocabulary, vocabulary, Variety(segmentation, lower_case=1.0), 7).epoch(0)
    assert vocabulary.decode(result[0].source) == tidy("j\u030c") == "\u01f0"
