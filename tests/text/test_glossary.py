"""Glossaries: files, and the terms of a text."""

from pathlib import Path

import pytest

from regard.text.glossary import Glossary, Term


def forms(glossary: Glossary, text: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(text[term.start : term.end], term.forms) for term in glossary.terms(text)]


def test_terms_are_matched_by_whole_words() -> None:
    glossary = Glossary.of([("cat", "Katze")])
    assert forms(glossary, "A cat, a category and concat.") == [("cat", ("Katze",))]


def test_the_longest_term_comes_first() -> None:
    glossary = Glossary.of([("hot", "heiß"), ("hot dog", "Hotdog"), ("dog", "Hund")])
    text = "A hot dog is no dog."
    assert forms(glossary, text) == [("hot dog", ("Hotdog",)), ("dog", ("Hund",))]


def test_case_matters_only_where_the_glossary_says_so() -> None:
    glossary = Glossary.of([("Polish", "polnisch"), ("polish", "polieren"), ("Apple", "Apple")])
    assert forms(glossary, "Polish") == [("Polish", ("polnisch",))]
    assert forms(glossary, "polish") == [("polish", ("polieren",))]
    assert forms(glossary, "POLISH") == [("POLISH", ("polnisch",))]
    assert forms(glossary, "an apple") == [("apple", ("Apple",))]


def test_an_equals_sign_keeps_the_source_as_it_is_written() -> None:
    glossary = Glossary.of([("regard", "=")])
    assert forms(glossary, "Use REGARD now") == [("REGARD", ("REGARD",))]


def test_a_term_that_occurs_twice_is_listed_once() -> None:
    assert len(Glossary.of([("a b", "x")]).terms("a b and a b")) == 1


def test_words_without_spaces() -> None:
    glossary = Glossary.of([("注意", "attention"), ("注", "note")])
    assert glossary.terms("请注意这里") == [Term(1, 3, ("attention",))]


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("boy\tमुलगा|मुलाने\n\nboy\tमुलाला\nname\t=\tignored\n", encoding="utf-8")
    glossary = Glossary.read(path)
    assert forms(glossary, "The boy has a name") == [("boy", ("मुलगा", "मुलाने", "मुलाला")), ("name", ("name",))]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("boy\n", "line 1: expected a source term, a TAB and its target, got 'boy'"),
        ("a\tb\n\tx\n", "line 2: expected a source term, a TAB and its target"),
        ("a\t|\n", r"line 1: expected a target term, got '\|'"),
        ("\n\n", "no terms; expected lines of a source term, a TAB and its target"),
        ("a\t" + "b" * 501 + "\n", "line 1: expected at most 500 characters a term"),
    ],
)
def test_what_is_no_glossary_is_an_error(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        Glossary.read(path)


def test_terms_of_python_need_both_sides() -> None:
    with pytest.raises(ValueError, match="expected a source and a target term, got 'a' and ' '"):
        Glossary.of([("a", " ")])
