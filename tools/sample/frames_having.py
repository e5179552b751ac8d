"""Frames of having, wanting and liking: the person stands in an oblique case, the verb follows the thing."""

from collections.abc import Iterator
from itertools import product

from tools.sample.agreement import THIS, Form, inflect, is_, is_not, present
from tools.sample.people import ALL, ANYONE, ASKED, Person
from tools.sample.sentences import Pair, question, statement
from tools.sample.verbs import MASSES, bare, doable, habits
from tools.sample.vocabulary import NUMBERS, QUALITIES, Noun, Phrase, nouns, of_kind

_PORTABLE = "text food goods tool flower"
_KEPT = _PORTABLE + " animal"


def _one(kinds: str) -> list[Phrase]:
    return [noun.one(quality) for noun in of_kind(kinds) for quality in QUALITIES[noun.kind]]


def _counted(kinds: str) -> list[Phrase]:
    return [noun.many(number=number) for noun in of_kind(kinds) for number in NUMBERS]


def _has(person: Person) -> str:
    return f"{person.english} {person.verb('have', 'has')}"


def has_one() -> Iterator[Pair]:
    """Sita has a new book."""
    for person, thing in product(ALL, _one(_KEPT)):
        yield statement(f"{_has(person)} {thing.english}", f"{person.possessor} {thing.marathi} आहे")


def has_some() -> Iterator[Pair]:
    """I have three caps."""
    for person, things in product(ALL, _counted(_KEPT)):
        yield statement(f"{_has(person)} {things.english}", f"{person.possessor} {things.marathi} आहेत")


def has_no() -> Iterator[Pair]:
    """Mohan does not have a watch."""
    for person, noun in product(ALL, of_kind(_KEPT)):
        english = f"{person.english} {person.verb('do', 'does')} not have"
        yield statement(f"{english} {noun.one().english}", f"{person.possessor} {noun.marathi} नाही")


def has_it() -> Iterator[Pair]:
    """Does Asha have a red cap?"""
    for person, thing in product(ASKED, _one(_KEPT)):
        english = f"{person.verb('do', 'does')} {person.english} have {thing.english}"
        yield question(english, f"{person.possessor} {thing.marathi} आहे का")


_KIN = (
    ("brother", "brothers", "भाऊ", "भाऊ"),
    ("sister", "sisters", "बहीण", "बहिणी"),
    ("son", "sons", "मुलगा", "मुलगे"),
    ("daughter", "daughters", "मुलगी", "मुली"),
)


def has_kin() -> Iterator[Pair]:
    """Amit has two sisters: relatives are had in the dative."""
    for person, (one, many, one_marathi, many_marathi) in product(ALL, _KIN):
        yield statement(f"{_has(person)} one {one}", f"{person.dative} एक {one_marathi} आहे")
        for number in ("two", "three", "four"):
            marathi = f"{person.dative} {NUMBERS[number]} {many_marathi} आहेत"
            yield statement(f"{_has(person)} {number} {many}", marathi)


def wants() -> Iterator[Pair]:
    """I want a red cap; Asha wants two flowers."""
    for person, thing in product(ANYONE, [*_one(_PORTABLE), *_counted(_PORTABLE), *map(bare, MASSES["drink"])]):
        want = f"{person.english} {person.verb('want', 'wants')}"
        marathi = f"{person.dative} {thing.marathi} {inflect('हव', thing.form)} {is_(thing.form)}"
        yield statement(f"{want} {thing.english}", marathi)


def wants_to() -> Iterator[Pair]:
    """Rahul wants to buy a car: वाचायचा, -ची, -चं follow what is read."""
    singles = [(verb, noun.one()) for verb, noun in doable("read eat buy")]
    for person, (verb, thing) in product(ANYONE, singles + habits("drink")):
        want = f"{person.english} {person.verb('want', 'wants')} to {verb.base}"
        yield statement(f"{want} {thing.english}", f"{person.dative} {thing.marathi} {verb.to_be_done(thing.form)}")


def _liked() -> list[Phrase]:
    """What one likes: a mass, a kind of thing, or this one."""
    masses = [bare(noun) for noun in nouns("tea coffee milk rice")]
    return masses + [noun.many() for noun in _KINDS] + [_this(noun) for noun in _NEAR]


_KINDS = [*of_kind("food flower animal"), *nouns("book story")]
_NEAR = of_kind("text tale goods place")


def _this(noun: Noun) -> Phrase:
    return Phrase(f"this {noun.english}", f"{THIS[noun.form]} {noun.marathi}", noun.form)


def likes() -> Iterator[Pair]:
    """Asha likes mangoes; I like this story."""
    for person, thing in product(ANYONE, _liked()):
        like = f"{person.english} {person.verb('like', 'likes')}"
        yield statement(f"{like} {thing.english}", f"{person.dative} {thing.marathi} {present('आवडत', thing.form)}")


def likes_not() -> Iterator[Pair]:
    """Amit does not like coffee."""
    for person, thing in product(ANYONE, _liked()):
        like = f"{person.english} {person.verb('do', 'does')} not like"
        yield statement(f"{like} {thing.english}", f"{person.dative} {thing.marathi} आवडत {is_not(thing.form)}")


def likes_it() -> Iterator[Pair]:
    """Do you like this shirt?"""
    for person, thing in product(ASKED, _liked()):
        english = f"{person.verb('do', 'does')} {person.english} like {thing.english}"
        yield question(english, f"{person.dative} {thing.marathi} {present('आवडत', thing.form)} का")


def must() -> Iterator[Pair]:
    """Meena must read the letter: the doer is ergative, the verb follows the object."""
    for person, (verb, noun) in product(ANYONE, doable("read write bring buy wash close")):
        thing = noun.one(article="the")
        marathi = f"{person.ergative} {thing.marathi} {verb.was_done(thing.form)} पाहिजे"
        yield statement(f"{person.english} must {verb.base} {thing.english}", marathi)


def must_go() -> Iterator[Pair]:
    """We must go to the market: without an object the verb is neuter."""
    places = (("school", "शाळेत"), ("the market", "बाजारात"), ("the hospital", "दवाखान्यात"), ("the temple", "मंदिरात"))
    for person, (place, inside) in product(ANYONE, places):
        marathi = f"{person.ergative} {inside} {inflect('गेल', Form.NS)} पाहिजे"
        yield statement(f"{person.english} must go to {place}", marathi)
