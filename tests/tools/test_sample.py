"""The sample corpus keeps the rules its README states."""

import re
import unicodedata
from collections import Counter

import pytest

from regard.samples import DEV, LINKS, TRAIN, folder, read
from tools.sample import build, overlap
from tools.sample.agreement import Form, adjective, inflect, present
from tools.sample.frames import HELD_OUT, frame_pairs
from tools.sample.people import WE
from tools.sample.sentences import words
from tools.sample.verbs import VERBS, auxiliary
from tools.sample.vocabulary import NOUNS, of_kind

FILES = (TRAIN, *DEV)


@pytest.fixture(scope="module")
def parts() -> dict[str, list[tuple[str, str]]]:
    return {name: read(folder() / name) for name in FILES}


@pytest.fixture(scope="module")
def pairs(parts) -> list[tuple[str, str]]:
    return [pair for part in parts.values() for pair in part]


def sources(part) -> set[str]:
    return {english for english, _ in part}


def bare(text: str) -> str:
    return overlap.plain(text)


def test_rebuilding_gives_what_is_in_the_repository(tmp_path):
    build.write(tmp_path)
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (folder() / name).read_bytes()


def test_counts(parts, pairs):
    frames = {english for result in frame_pairs().values() for english, _ in result}
    free = sources(read(build.FREE_SENTENCES))
    assert len(pairs) >= 2000 and len(frames) >= 1900 and len(free) >= 300
    assert not frames & free
    assert sources(pairs) == frames | free
    dev = sources(parts[DEV[0]]) | sources(parts[DEV[1]])
    assert 0.095 <= len(dev) / len(sources(pairs)) <= 0.105
    assert len(sources(parts[DEV[1]])) >= 0.2 * len(dev)
    assert sources(parts[DEV[0]]) <= frames and sources(parts[DEV[1]]) <= free


def test_readme_states_the_counts(parts, pairs):
    readme = (folder().parent / "README.md").read_text(encoding="utf-8")
    free = sources(read(build.FREE_SENTENCES))
    for name, part in parts.items():
        result = sources(part)
        counts = (len(part), len(result), len(result - free), len(result & free))
        assert f"| `{name}` | " + " | ".join(f"{count:,}" for count in counts) + " |" in readme
    assert f"{len(pairs):,} pairs of everyday sentences, {len(sources(pairs)):,} distinct English ones" in readme
    framed = [pair for result in frame_pairs().values() for pair in result]
    for part in (framed, read(build.FREE_SENTENCES)):
        assert f"({len(part):,} pairs, {len(sources(part)):,} sources)" in readme
    for some in (framed, pairs):
        english, marathi = (len({word for pair in some for word in words(pair[column])}) for column in (0, 1))
        assert re.search(rf"{english} (English )?and {marathi}\b", readme)


def test_no_dev_source_or_target_in_train(parts):
    train = parts[TRAIN]
    dev = [pair for name in DEV for pair in parts[name]]
    for column in (0, 1):
        assert not {bare(pair[column]) for pair in train} & {bare(pair[column]) for pair in dev}


def test_every_dev_word_stands_in_train_three_times(parts):
    seen = Counter(word for pair in parts[TRAIN] for text in pair for word in words(text))
    wanted = {word for name in DEV for pair in parts[name] for text in pair for word in words(text)}
    assert {word: seen[word] for word in wanted if seen[word] < 3} == {}


def test_dev_spreads_over_the_frames(parts):
    dev = sources(parts[DEV[0]])
    shares = {name: len(sources(result) & dev) for name, result in frame_pairs().items()}
    assert sum(count == 0 for count in shares.values()) <= 2
    assert max(shares.values()) <= 10


def test_the_held_out_sentence_is_nowhere(pairs):
    assert bare(HELD_OUT) not in {bare(english) for english, _ in pairs}
    assert bare("राहुल चांगला मुलगा आहे") not in {bare(marathi) for _, marathi in pairs}


def test_what_composes_the_held_out_sentence_is_in_train(parts):
    train = dict(parts[TRAIN])
    good = [name for name in ("Amit", "Mohan", "He") if f"{name} is a good boy." in train]
    assert len(good) >= 3
    assert sum(english.startswith("Rahul is ") and english.endswith(" boy.") for english in train) >= 4


@pytest.mark.parametrize("name", [*FILES, "free"])
def test_lines_are_clean(name):
    path = build.FREE_SENTENCES if name == "free" else folder() / name
    text = path.read_text(encoding="utf-8")
    assert text == unicodedata.normalize("NFC", text)
    assert text.endswith("\n") and "\r" not in text and "  " not in text
    lines = text.splitlines()
    assert len(set(lines)) == len(lines)
    for line in lines:
        english, marathi = line.split("\t")
        assert english == english.strip() and marathi == marathi.strip()
        assert english[-1] == marathi[-1] and english[-1] in ".?!"
        assert re.fullmatch(r"[A-Za-z',.?! ]+", english), english
        assert re.fullmatch(r"[\u0900-\u0963,.?! ]+", marathi), marathi


def test_no_pair_stands_twice(pairs):
    assert len(set(pairs)) == len(pairs)


def test_read_names_a_line_that_is_no_pair(tmp_path):
    path = tmp_path / "bad.tsv"
    path.write_text("Hello\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 1: expected English, one tab, Marathi"):
        read(path)


def links() -> list[tuple[list[str], list[str], list[str]]]:
    columns = [(folder() / name).read_text(encoding="utf-8").splitlines() for name in LINKS]
    return [
        (source.split(" "), target.split(" "), result.split(" "))
        for source, target, result in zip(*columns, strict=True)
    ]


def test_links_are_in_bounds_and_of_both_kinds():
    kinds = Counter()
    for source, target, result in links():
        assert len(set(result)) == len(result)
        linked = Counter()
        for link in result:
            i, kind, j = re.fullmatch(r"(\d+)([-p])(\d+)", link).groups()
            assert int(i) < len(source) and int(j) < len(target), link
            linked[i, j] += 1
            kinds[kind] += 1
        assert max(linked.values()) == 1, "a link is sure or possible, not both"
        last = f"{len(source) - 1}-{len(target) - 1}"
        assert last in result, "the final punctuation marks are linked"
    assert kinds["-"] > 500 and kinds["p"] > 200


def test_links_are_of_pairs_of_the_sample(parts):
    def tokens(text: str) -> str:
        return re.sub(r"([.,?!])", r" \1", text)

    where = {(tokens(english), tokens(marathi)): name for name, part in parts.items() for english, marathi in part}
    result = Counter(where[" ".join(source), " ".join(target)] for source, target, _ in links())
    assert sum(result.values()) == 150 and result[TRAIN] == 75 and min(result[name] for name in DEV) >= 25
    assert len({(tuple(source), tuple(target)) for source, target, _ in links()}) == 150


def test_agreement():
    good = [adjective("चांगला", form) for form in Form]
    assert good == ["चांगला", "चांगली", "चांगलं", "चांगले", "चांगल्या", "चांगली"]
    assert adjective("लाल", Form.FP) == "लाल"
    assert inflect("पांढर", Form.FP) == "पांढऱ्या"
    assert [present("वाचत", form) for form in (Form.MS, Form.FS, Form.NS, Form.NP)] == [
        "वाचतो",
        "वाचते",
        "वाचतं",
        "वाचतात",
    ]
    assert VERBS["eat"].was_done(NOUNS["mango"].form) == "खाल्ला"
    assert VERBS["buy"].future(WE.form, 1) == "विकत घेऊ"
    assert auxiliary(WE) == "आहोत"
    assert len(of_kind("drink")) == 4


def test_overlap_counts_what_both_hold(tmp_path, capsys):
    english, marathi = read(folder() / TRAIN)[0]
    other = tmp_path / "other.tsv"
    other.write_text(f"{english.upper()}\t{marathi}\textra\n{english}\tकाहीतरी\n", encoding="utf-8")
    overlap.main([str(other)])
    shown = capsys.readouterr().out
    assert "sources: 1 of" in shown and "targets: 1 of" in shown and "pairs: 1 of" in shown
    with pytest.raises(SystemExit, match="usage"):
        overlap.main([])
