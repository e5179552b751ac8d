"""Words by their letters."""

from regard.text.spelling import BEGINS, ENDS, Spelling, character_ngrams


def test_runs_of_a_word() -> None:
    marked = f"{BEGINS}film{ENDS}"
    expected = {marked[a:b] for a in range(6) for b in range(a + 3, min(a + 5, 6) + 1)}
    assert character_ngrams("film") == expected and len(expected) == 9
    assert character_ngrams("") == set() and character_ngrams("a") == {f"{BEGINS}a{ENDS}"}


def test_only_what_two_words_share_has_a_number() -> None:
    spelling = Spelling(["boring", "boredom", "caring"])
    shared = {"bor", "ing", f"{BEGINS}bo", f"{BEGINS}bor", f"ng{ENDS}", f"ing{ENDS}", "ring", "rin", f"ring{ENDS}"}
    assert len(spelling) == len(shared) + 1
    numbers = {run: number for number, run in enumerate(sorted(shared), 1)}
    assert spelling("bored") == tuple(sorted(numbers[run] for run in ("bor", f"{BEGINS}bo", f"{BEGINS}bor")))
    assert spelling("xyz") == ()


def test_numbers_do_not_depend_on_the_order_of_words() -> None:
    words = ["boring", "boredom", "caring", "card"]
    assert Spelling(words)("careful") == Spelling(words[::-1])("careful") != ()
